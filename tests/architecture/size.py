"""The size of the code and its limits, checked by ``make lint``: python -m tests.architecture.size"""

import ast
import io
import re
import sys
import tokenize
from pathlib import Path

NOT_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
ADR = Path("docs/adr/0025-open-house.md")  # the one place of the limits


def code_lines(text: str) -> int:
    """Lines with code: neither blank, nor a comment, nor part of a docstring."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    code = {line for token in tokens if token.type not in NOT_CODE for line in range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            code -= set(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    return len(code)


def limits(adr: str) -> dict[str, int]:
    """The largest number of lines of code by folder, from lines such as "- `src`: at most 16,000 lines of code"."""
    found = re.findall(r"^- `(\w+)`: at most ([\d,]+) lines of code", adr, re.MULTILINE)
    return {folder: int(number.replace(",", "")) for folder, number in found}


def excess(folder: str, limit: int) -> bool:
    """Prints the size of a folder; returns whether it is above its limit."""
    texts = [path.read_text(encoding="utf-8") for path in Path(folder).rglob("*.py")]
    code, every = sum(map(code_lines, texts)), sum(text.count("\n") for text in texts)
    print(f"{folder}: {code:,} lines of code ({limit:,} at most), {every:,} in all, in {len(texts)} files")
    return code > limit


if __name__ == "__main__":
    above = [folder for folder, limit in limits(ADR.read_text(encoding="utf-8")).items() if excess(folder, limit)]
    if above:
        sys.exit(f"{', '.join(above)}: above the limit; take code away, or change {ADR}, which says why it is worth it")
