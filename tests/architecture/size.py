"""The size of the sources, printed by ``make lint``: python -m tests.architecture.size"""

import ast
import io
import tokenize
from pathlib import Path

NOT_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def code_lines(text: str) -> int:
    """Lines with code: neither blank, nor a comment, nor part of a docstring."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    code = {line for token in tokens if token.type not in NOT_CODE for line in range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            code -= set(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    return len(code)


if __name__ == "__main__":
    texts = [path.read_text(encoding="utf-8") for path in Path("src").rglob("*.py")]
    code, every = sum(map(code_lines, texts)), sum(text.count("\n") for text in texts)
    print(f"src: {code:,} lines of code, {every:,} with blanks, comments and docstrings, in {len(texts)} files")
