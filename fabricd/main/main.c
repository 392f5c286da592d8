#include "fabricd/main/fabricd_main.h"

int main(int argc, char **argv)
{
    return fabricd_main(argc, argv);
}
