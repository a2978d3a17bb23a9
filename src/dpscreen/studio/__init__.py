"""From a file to a private model in the browser: a wizard on this machine, for this person only."""
