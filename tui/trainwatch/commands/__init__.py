"""The command line beside the screen: one module for each command, none of which imports Textual."""
