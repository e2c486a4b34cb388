"""The style sheet of the terminal: its own colours, on its own background."""

from typing import Final

STYLE: Final = """
Screen {
    background: ansi_default;
    color: ansi_default;
    layout: vertical;
}
#transcript {
    height: 1fr;
    background: ansi_default;
    scrollbar-size-vertical: 1;
    scrollbar-size-horizontal: 0;
    scrollbar-color: ansi_bright_black;
    scrollbar-color-hover: ansi_bright_black;
    scrollbar-color-active: ansi_bright_black;
    scrollbar-background: ansi_default;
    scrollbar-background-hover: ansi_default;
    scrollbar-background-active: ansi_default;
}
#activity {
    height: auto;
    padding: 1 0 0 0;
}
#completion {
    height: auto;
    max-height: 8;
    padding: 0 2;
    background: ansi_default;
    border: none;
}
#composer {
    height: auto;
    max-height: 10;
    border: round ansi_bright_black;
    background: ansi_default;
    padding: 0 1;
}
#composer:focus { border: round ansi_cyan; }
.-short #composer, .-short #composer:focus { border: none; max-height: 3; }
#status { height: 1; padding: 0 1; }
OptionList { background: ansi_default; scrollbar-size-vertical: 1; }
OptionList > .option-list--option-highlighted,
OptionList:focus > .option-list--option-highlighted {
    background: ansi_default;
    color: ansi_cyan;
    text-style: bold reverse;
}
Picker { align: center middle; background: ansi_default; }
#picker {
    width: 90%;
    max-width: 110;
    height: auto;
    max-height: 80%;
    border: round ansi_cyan;
    padding: 0 1;
}
#picker-title { text-style: bold; }
#picker-search { background: ansi_default; margin: 0 0 1 0; }
#picker-list, #completion { text-wrap: nowrap; text-overflow: ellipsis; }
#picker-list { height: auto; max-height: 24; background: ansi_default; border: none; }
"""
