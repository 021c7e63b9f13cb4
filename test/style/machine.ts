import type { Node, SourceFile, Violation } from "./source.ts";
import { isNode, isTest, lineOf, parse, walk } from "./source.ts";

/** Where they are wrapped for the pages, which run in browsers and have nothing of `src/core/`. */
const OF_PAGES = "src/web/client/base/clock.ts";

/**
 * Uses of the machine's clock, timers and randomness outside of `src/core/`, where they are wrapped: in whatever form
 * they are reached (global, `globalThis`, destructured, aliased, imported). Tests are free to use them.
 */
export function checkMachine(files: readonly SourceFile[]): Violation[] {
  return files
    .filter((file) => !file.path.startsWith("src/core/") && file.path !== OF_PAGES && !isTest(file))
    .flatMap((file) => {
      const found: Violation[] = [];
      walk(parse(file), (node, parent, field) => {
        const use = useOf(node, parent, field);
        if (use === undefined) return;
        const message = `${use} belongs to src/core: take a Clock or a Random`;
        found.push({ path: file.path, line: lineOf(file.text, node.start), message });
      });
      return found;
    });
}

/** Members by the global they belong to. */
const MEMBERS: Readonly<Record<string, readonly string[]>> = {
  Date: ["now"],
  Math: ["random"],
  performance: ["now", "timeOrigin"],
  process: ["hrtime"],
  AbortSignal: ["timeout"],
};
/** Functions of `crypto`, recognised on any object: it is imported under many names. */
const RANDOM = /^(random(Bytes|UUID|UUIDv7|Int|Fill|FillSync)|pseudoRandomBytes|getRandomValues)$/;
const TIMERS = new Set(["setTimeout", "setInterval", "setImmediate"]);
const TIMER_MODULES = /^(node:)?timers(\/promises)?$/;

function useOf(node: Node, parent: Node | undefined, field: string): string | undefined {
  switch (node.type) {
    case "MemberExpression":
      return memberUse(node);
    case "NewExpression":
      return nameOf(node.callee) === "Date" && (node.arguments as unknown[]).length === 0 ? "new Date()" : undefined;
    case "CallExpression":
      return nameOf(node.callee) === "Date" ? "Date()" : undefined;
    case "Identifier":
      return TIMERS.has(String(node.name)) && isReference(parent, field) ? String(node.name) : undefined;
    case "VariableDeclarator":
      return aliasUse(node.id, node.init);
    case "AssignmentExpression":
      return aliasUse(node.left, node.right);
    case "ImportDeclaration":
      return node.importKind === "type" ? undefined : importUse(node);
    default:
      return undefined;
  }
}

/** `Date`, also as `globalThis.Date`. */
function nameOf(node: unknown): string | undefined {
  if (!isNode(node)) return undefined;
  if (node.type === "Identifier") return String(node.name);
  if (node.type === "MemberExpression" && nameOf(node.object) === "globalThis") return propertyOf(node);
  return undefined;
}

/** The name of a property, written with a dot or as a literal in brackets. */
function propertyOf(node: Node): string | undefined {
  if (!isNode(node.property)) return undefined;
  if (node.computed === true) return node.property.type === "Literal" ? String(node.property.value) : undefined;
  return String(node.property.name);
}

function memberUse(node: Node): string | undefined {
  const property = propertyOf(node);
  const object = nameOf(node.object);
  if (property === undefined) return undefined;
  if (RANDOM.test(property) || (TIMERS.has(property) && object === "globalThis")) return property;
  return object !== undefined && (MEMBERS[object] ?? []).includes(property) ? `${object}.${property}` : undefined;
}

/** Whether an identifier stands for a value here, and is not the name of a property or of a type. */
function isReference(parent: Node | undefined, field: string): boolean {
  if (parent === undefined || parent.type.startsWith("TS") || parent.type === "ImportSpecifier") return false;
  if (field === "property") return parent.computed === true;
  // A shorthand `{ setTimeout }` has the name as its value too.
  return field !== "key";
}

/** `const { now } = Date`, `const D = Date`. */
function aliasUse(target: unknown, value: unknown): string | undefined {
  const name = nameOf(value);
  if (name === undefined || !isNode(target)) return undefined;
  const members = name === "crypto" ? undefined : MEMBERS[name];
  if (members === undefined && name !== "crypto") return undefined;
  if (target.type !== "ObjectPattern")
    return name === "process" || name === "AbortSignal" ? undefined : `an alias of ${name}`;
  const keys = (target.properties as Node[]).map((p) => (isNode(p.key) ? String(p.key.name) : "...rest"));
  const taken = keys.find((key) => RANDOM.test(key) || (members ?? []).includes(key));
  return taken === undefined ? undefined : `${name}.${taken}`;
}

function importUse(node: Node): string | undefined {
  const module = isNode(node.source) ? String(node.source.value) : "";
  if (TIMER_MODULES.test(module)) return `an import of ${module}`;
  for (const specifier of node.specifiers as Node[]) {
    if (specifier.importKind === "type" || !isNode(specifier.imported)) continue;
    const name = String(specifier.imported.name);
    if (/^(node:)?crypto$/.test(module) && (RANDOM.test(name) || name === "webcrypto")) return `${name} of ${module}`;
    if (/^(node:)?perf_hooks$/.test(module) && name === "performance") return `performance of ${module}`;
  }
  return undefined;
}
