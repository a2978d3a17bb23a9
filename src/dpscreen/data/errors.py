"""What can go wrong with a data set, each as its own kind of error.

The names say what happened, which an `Error` at their end would not make clearer.
"""


class DataError(Exception):
    """Any failure to find, read or download a data set."""


class UnknownDataset(DataError, ValueError):
    """The name, or the target asked for, is not in the catalogue."""


class MissingDataset(DataError, FileNotFoundError):
    """The data set is known, but no copy of it was found here."""


class CorruptDataset(DataError, ValueError):
    """A file is there, but it does not hold the data set it is named after."""


class DownloadFailed(DataError):
    """The archive could not be reached, or did not deliver."""


class CorruptDownload(DownloadFailed, CorruptDataset):
    """The archive delivered something other than the data set; nothing was kept."""


def first_line(reason: BaseException) -> str:
    """What another library said, short enough to stand inside a sentence."""
    return (str(reason).strip() or type(reason).__name__).splitlines()[0]
