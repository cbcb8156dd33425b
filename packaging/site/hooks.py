"""What the site has beside docs/: the front page, what pages link to outside of docs/, and the navigation, which docs/README.md gives.

Pages are written for GitHub. What mkdocs reads another way is changed while a page is read; nothing is written back.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File
from pymdownx.slugs import slugify

ROOT = Path(__file__).resolve().parents[2]
INDEX = "documents.md"  # what docs/README.md is called: index.md is the front page
OUTSIDE = {"README.md": "index.md", "CHANGELOG.md": "changelog.md"}  # pages in ROOT; other files keep their paths, below files/
LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
ENTRY = re.compile(r"\[([^\]]+)\]\(([^)#\s]+\.md)\)")


def on_config(config):
    config.mdx_configs["toc"]["slugify"] = slugify(case="lower")  # as GitHub's
    config.nav = navigation((ROOT / "docs/README.md").read_text())
    return config


def navigation(text):
    """The sections of docs/README.md, each with its pages in their order; a page belongs to the first that links to it."""
    nav, seen = [{"Start": [{"xstrace": "index.md"}, {"All documents": INDEX}]}], {"../README.md"}
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        title, _, body = part.partition("\n")
        pages = []
        for name, path in ENTRY.findall(body):
            if path not in seen:
                seen.add(path)
                name = name.replace("`", "")
                pages.append({name[0].upper() + name[1:]: OUTSIDE.get(path.removeprefix("../"), path)})
        if title == "Start":
            nav[0]["Start"][1:1] = pages
        else:
            nav.append({title: pages})
    return nav


def on_files(files, config):
    readme = files.get_file_from_path("README.md")
    files.remove(readme)
    files.append(File.generated(config, INDEX, content=readme.content_string))
    for path, name in OUTSIDE.items():
        files.append(File.generated(config, name, content=(ROOT / path).read_text()))
    for target in sorted({target for page in files.documentation_pages() for target in outside(page)}):
        files.append(File.generated(config, f"files/{target}.txt", content=(ROOT / target).read_text()))
    return files


def source(file):
    """Where a page of the site lies in the repository."""
    named = {name: path for path, name in OUTSIDE.items()}
    return named.get(file.src_uri) or ("docs/README.md" if file.src_uri == INDEX else f"docs/{file.src_uri}")


def repository_path(file, link):
    return posixpath.normpath(posixpath.join(posixpath.dirname(source(file)), link))


def outside(page):
    """Files that a page links to and that are no pages of the site."""
    for _, link, _, _ in LINK.findall(without_code(page.content_string)):
        path = repository_path(page, link)
        if "://" not in link and not path.startswith("docs/") and path not in OUTSIDE and (ROOT / path).is_file():
            yield path


def without_code(text):
    return re.sub(r"```.*?^\s*```|`[^`\n]*`", "", text, flags=re.S | re.M)


def on_page_markdown(text, page, **_):
    """The page as mkdocs understands it: links, lists, cells of tables."""
    lines, fenced, before = [], False, ""
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            line = LINK.sub(lambda link: linked(page.file, link), line)
            if line.startswith("|"):  # a | in code is no border
                line = re.sub(r"`[^`]*`", lambda code: code[0].replace("\\|", "|"), line)
            elif re.match(r"\s*([-*]|\d+\.) ", line):
                line = nested(line)
                if before.strip() and not re.match(r"\s*([-*]|\d+\.) |\s+\S", before):
                    lines.append("")  # a list needs an empty line before it
        lines.append(line)
        before = line
    return "\n".join(lines)


def nested(line):
    """A list in a list: four columns, where GitHub is content with two."""
    indent = len(line) - len(line.lstrip())
    return " " * (4 if 2 <= indent < 4 else indent) + line.lstrip()


def linked(file, link):
    if "://" in link[2]:
        return link[0]
    path = repository_path(file, link[2])
    if path == "docs/README.md":
        target = INDEX
    elif path.startswith("docs/"):
        target = path.removeprefix("docs/")
    else:
        target = OUTSIDE.get(path, f"files/{path}.txt")
    relative = posixpath.relpath(target, posixpath.dirname(file.src_uri) or ".")
    return f"{link[1]}{relative}{link[3] or ''}{link[4]}"
