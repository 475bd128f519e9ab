"""Which modules of ours a source file reaches, however it spells the import."""

import ast
from importlib.util import resolve_name

LOADERS = {"import_module", "__import__"}


class Imports(ast.NodeVisitor):
    """Modules of ours that a file imports, anywhere in the file.

    Parameters
    ----------
    module : str
        Dotted name of the file's module.
    is_package : bool
        Whether the file is an ``__init__.py``, which relative imports depend on.
    known : set of str
        Dotted names of all our modules.
    public : function
        Modules of the public names of a lazy package: public("headcount.methods")["PACC"].

    Attributes
    ----------
    reached : set of str
        Modules, among those known.
    names : list of (module, name)
        Names taken by ``from module import name``.
    computed : list of str
        Calls of import_module whose argument is no literal: what they import cannot be read.
    """

    def __init__(self, module, is_package, known, public):
        self.package = module if is_package else module.rpartition(".")[0]
        self.known, self.public = known, public
        self.top = module.split(".")[0]
        self.reached, self.names, self.computed = set(), [], []
        self.bound = {}  # local name -> dotted name of ours
        self.loaders = set(LOADERS)

    @classmethod
    def of(cls, source, module, is_package, known, public):
        """Imports of a source text."""
        imports = cls(module, is_package, known, public)
        tree = ast.parse(source)
        # Names are bound first: a function may use what is imported further down.
        for node in ast.walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                imports.visit(node)
        for node in ast.walk(tree):
            if isinstance(node, (ast.Call, ast.Attribute)):
                imports.visit(node)
        imports.reached.discard(module)
        return imports

    def reach(self, dotted):
        """Note the module that a dotted name leads to; a public name leads to its home."""
        at = self.top
        for part in dotted.split(".")[1:]:
            inner = f"{at}.{part}"
            if inner not in self.known:
                inner = self.public(at).get(part)
                if inner is not None:
                    self.reached.add(inner)
                break
            at = inner
        self.reached.add(at)

    def is_ours(self, dotted):
        return dotted.split(".")[0] == self.top

    def visit_Import(self, node):
        for alias in node.names:
            if self.is_ours(alias.name):
                self.reach(alias.name)
                if alias.asname:
                    self.bound[alias.asname] = alias.name
                else:
                    self.bound[self.top] = self.top

    def visit_ImportFrom(self, node):
        stem = node.module or ""
        if node.level:
            stem = resolve_name("." * node.level + stem, self.package)
        for alias in node.names:
            if stem == "importlib" and alias.name == "import_module":
                self.loaders.add(alias.asname or alias.name)
            if self.is_ours(stem):
                dotted = stem if alias.name == "*" else f"{stem}.{alias.name}"
                self.reach(stem)
                self.reach(dotted)
                self.names.append((stem, alias.name))
                self.bound[alias.asname or alias.name] = dotted

    def visit_Call(self, node):
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        if name not in self.loaders or not node.args:
            return
        if not isinstance(node.args[0], ast.Constant):
            self.computed.append(ast.unparse(node))
            return
        target = str(node.args[0].value)
        if target.startswith("."):
            given = [*node.args[1:], *(k.value for k in node.keywords if k.arg == "package")]
            literal = given and isinstance(given[0], ast.Constant)
            target = resolve_name(target, given[0].value if literal else self.package)
        if self.is_ours(target):
            self.reach(target)

    def visit_Attribute(self, node):
        path = [node.attr]
        while isinstance(node.value, ast.Attribute):
            node = node.value
            path.append(node.attr)
        if isinstance(node.value, ast.Name) and node.value.id in self.bound:
            self.reach(".".join([self.bound[node.value.id], *reversed(path)]))


def cycles(graph):
    """Groups of modules that import each other: strongly connected components (Tarjan, 1972)."""
    index, low, stack, components = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(graph.get(node, ())):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            component = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(component) > 1:
                components.append(sorted(component))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return components
