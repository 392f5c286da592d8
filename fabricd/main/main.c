#include "fabricd/main/fabricd_main.h"
#include "fabricd/process/process.h"

int main(int argc, char **argv)
{
    signals_ignore(); /* inherited by children */
    return fabricd_main(argc, argv);
}
