"""A page as a browser would read it."""

import re
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "hr", "input", "path", "use"}


class Page(HTMLParser):
    """What a browser would make of the page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source, self.tags, self.ids, self.text, self.open = text, [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())

    def check_alone(self) -> None:
        """Fail on a script, and on what would be loaded from elsewhere."""
        assert "script" not in {tag for tag, _ in self.tags}
        for _, attrs in self.tags:
            for name in ("src", "srcset", "href", "xlink:href", "action", "data"):
                assert attrs.get(name, "#").startswith(("#", "data:"))
        assert not re.search(r"@import|url\((?!#)|https?://", self.source)
