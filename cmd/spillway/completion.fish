# SPDX-License-Identifier: Apache-2.0
# Completion of spillway for fish 3 and newer: spillway completion fish | source

function __spillway_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program (string replace -r '^~/' "$HOME/" -- $words[1])
    set -e words[1]
    set -l lines ($program __complete $words "$current" 2>/dev/null)
    set -l flag (string match -r '^--[^=]*=' -- $current)
    set -l path (string replace -r '^--[^=]*=' '' -- $current)
    switch "$lines[1]"
        case files
            for found in (__fish_complete_path "$path")
                echo "$flag$found"
            end
        case dirs
            for found in (__fish_complete_directories "$path")
                echo "$flag$found"
            end
        case '*'
            set -e lines[1]
            printf '%s\n' $lines
    end
end

complete -c spillway -f -a '(__spillway_complete)'
