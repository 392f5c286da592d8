#!/bin/sh
# completion.sh SHELL PROGRAM - write completion for bash or zsh to standard output, generated from the program's --help,
# which the program makes from its tables of commands and options.
set -eu
shell=$1 program=$2
export ARGP_HELP_FMT=rmargin=1000 LC_ALL=C # one line per option
help=$("$program" --help)
for command in $(printf '%s\n' "$help" | awk '/^$/ { on = 0 } on { print $1 } /^[A-Z].*:$/ { on = !/ptions|Probes/ }'); do
    more=$("$program" "$command" --help)
    help="$help
$more"
done

printf '%s\n' "$help" | awk -v shell="$shell" -v program="${program##*/}" '
/^Usage:/ { command = $3 ~ /^[a-z]/ ? $3 : ""; part = "" }
/^[A-Z].*:$/ { part = $0; next }
command == "" && part != "" && part !~ /ptions|Probes/ && /^  [a-z]/ {
    text = $0
    sub(/^ *[^ ]+[^a-z]*/, "", text) # the arguments are in capitals
    commands = commands " " $1
    described = described sprintf("        %s\n", quoted($1 ":" text))
}
(part == "" || part ~ /ptions/) && match($0, /^  *(-., )?  *--[a-z-]+|^  *-., --[a-z-]+/) {
    if (part == "Options of all commands:")
        next
    name = substr($0, RSTART, RLENGTH)
    rest = substr($0, RSTART + RLENGTH)
    value = match(rest, /^[ =][A-Z][^ ]*/) ? substr(rest, 2, RLENGTH - 1) : ""
    sub(/^[ =][A-Z][^ ]*/, "", rest)
    sub(/^ */, "", rest)
    gsub(/\[|\]|:|\\/, "\\\\&", rest)
    sub(/.*--/, "--", name)
    options[command] = options[command] " " name
    action = value ~ /^DIR/ ? "_files -/" : value ~ /^FILE/ ? "_files" : value == "" || commands == "" ? "" : values(name)
    if (action ~ /^{/ && index(valued "|", "|" name "|") == 0)
        valued = valued "|" name
    gsub(/\[|\]|:|\\/, "\\\\&", value)
    specs[command] = specs[command] sprintf("        %s\n", \
        quoted(name (value == "" ? "" : "=") "[" rest "]" (value == "" ? "" : ":" value ":" action)))
}
# Get the values of options and arguments from the program itself.
function values(of) {
    return "{compadd -- ${(f)\"$(" program " --values " of " 2>/dev/null)\"}}"
}
function quoted(text) {
    gsub(/\047/, "\047\\\047\047", text)
    return "\047" text "\047"
}
function bash(    i, n, list) {
    n = split(commands, list, " ")
    printf "_%s()\n{\n    local word command= words=\n", program
    if (n > 0) {
        printf "    for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
        printf "        [[ \"%s \" != *\" $word \"* ]] || { command=$word; break; }\n    done\n", commands
        printf "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
        printf "    [[ $current != = ]] || current=\n"
        printf "    [[ $before != = ]] || before=${COMP_WORDS[COMP_CWORD-2]}\n"
        printf "    [[ ${COMP_WORDS[COMP_CWORD]} != = ]] || before=${COMP_WORDS[COMP_CWORD-1]}\n"
        printf "    case $before in\n    %s)\n", substr(valued, 2)
        printf "        mapfile -t COMPREPLY < <(compgen -W \"$(%s --values \"$before\" 2>/dev/null)\" -- \"$current\")\n", program
        printf "        return\n        ;;\n    esac\n"
    }
    printf "    case $command in\n    \"\") words=\"%s\" ;;\n", substr(commands options[""], 2)
    for (i = 1; i <= n; i++)
        if (options[list[i]] != "")
            printf "    %s) words=\"%s\" ;;\n", list[i], substr(options[list[i]], 2)
    printf "    esac\n    [ -z \"$command\" ] || words+=\"%s\"\n", options[""]
    if (n > 0)
        printf "    [[ -z $command || $current == -* ]] || words=$(%s --values \"$command\" 2>/dev/null)\n", program
    printf "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\")\n}\n"
    printf "complete -o default -F _%s %s\n", program, program
}
function zsh(    i, n, list) {
    n = split(commands, list, " ")
    printf "#compdef %s\nlocal curcontext=$curcontext state\nlocal -a options commands\n", program
    printf "options=(\n%s)\n", specs[""]
    if (n == 0) {
        printf "_arguments $options\n"
        return
    }
    printf "commands=(\n%s)\n", described
    printf "_arguments -C $options \0471:command:->command\047 \047*::argument:->argument\047\n"
    printf "case $state in\ncommand) _describe command commands ;;\nargument)\n    case $words[1] in\n"
    for (i = 1; i <= n; i++)
        if (specs[list[i]] != "")
            printf "    %s) options+=(\n%s    ) ;;\n", list[i], specs[list[i]]
    printf "    esac\n    local -a known=(${(f)\"$(%s --values $words[1] 2>/dev/null)\"})\n", program
    printf "    (( $#known )) && _arguments $options \047*:argument:($known)\047 ||\n"
    printf "        _arguments $options \047*:argument:_files\047\n    ;;\nesac\n"
}
END { if (shell == "zsh") zsh(); else bash() }'
