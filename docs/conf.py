"""How `make docs` turns these pages into a site, without a network."""

from __future__ import annotations

import sys
from pathlib import Path

import dpscreen

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "dpscreen"
release = version = dpscreen.__version__
project_copyright = "the dpscreen authors"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "commands",
    "docstrings",
]
exclude_patterns = ["_build", "gallery/*.rst"]

# --- Markdown: the same files read well on a code host ---
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
myst_update_mathjax = False
html_math_renderer = "mathml"

# --- docstrings ---
default_role = "literal"  # docstrings write `name` for code
autodoc_typehints = "none"  # the docstrings say what a parameter is
autodoc_member_order = "bysource"
napoleon_custom_sections = [("Attributes", "params_style")]  # "coef_, intercept_" in one entry
napoleon_use_rtype = False
add_module_names = False
toc_object_entries_show_parents = "hide"
python_maximum_signature_line_length = 80

# --- the gallery runs its scripts ---
sphinx_gallery_conf = {
    "examples_dirs": str(HERE / "gallery"),
    "gallery_dirs": "gallery_pages",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "matplotlib_animations": False,
}

# --- the site ---
html_theme = "pydata_sphinx_theme"
html_title = "dpscreen"
html_static_path = ["_static"]
html_css_files = ["dpscreen.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_prev_next": True,
    "navbar_align": "left",
    "navigation_with_keys": True,
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": {"[!g]*": ["page-toc"], "gl*": ["page-toc"]},
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "tutorial": []}
