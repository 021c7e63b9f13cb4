import { foldName } from "../../core/names.ts";
import type { TableShape } from "../contract/tables.ts";
import { isInstant, type Rewrites } from "../parse/rewrite.ts";
import {
  columnPath,
  isColumnRef,
  isObject,
  objectsOf,
  positionOf,
  textOf,
  type Json,
  type JsonObject,
} from "../parse/tree.ts";

/**
 * Which columns of a query are instants: by its scopes where they are certain, else by name alone (`instant-names.ts`).
 * For a query in which a name is a `timestamp` in one place and something else in another.
 */
export function instantsOf(
  node: JsonObject,
  tables: readonly TableShape[],
  timestampColumns: Rewrites["timestampColumns"],
): Rewrites {
  const columns = new Map<number, boolean>();
  new Scopes({ timestampColumns, columns }, columns, tables).statement(node, undefined);
  return { timestampColumns, columns };
}

/** Names are folded. An open relation may have other columns, too. */
type Column = { name: string; isInstant: boolean };
type Relation = { columns: readonly Column[]; isOpen: boolean };
type Source = Relation & { alias: string };

type Scope = {
  sources: Source[];
  /** Of the list that is selected, which later parts may name. */
  aliases: Map<string, boolean>;
  ctes: Map<string, Relation>;
  outer: Scope | undefined;
};

const OPEN: Relation = { columns: [], isOpen: true };
/** What selects more is taken as open: `*` twice in each of many subqueries would have no end. */
const MOST_COLUMNS = 10_000;

class Scopes {
  readonly #rewrites: Rewrites;
  /** By where the column stands in the text. */
  readonly #decided: Map<number, boolean>;
  readonly #tables: ReadonlyMap<string, Relation>;

  constructor(rewrites: Rewrites, decided: Map<number, boolean>, tables: readonly TableShape[]) {
    this.#rewrites = rewrites;
    this.#decided = decided;
    const shapes = new Map<string, Relation>();
    for (const table of tables) {
      const name = foldName(table.name);
      // Tables of two databases, say.
      shapes.set(name, shapes.has(name) ? OPEN : { columns: columnsOf(table), isOpen: false });
    }
    this.#tables = shapes;
  }

  /** Decides all columns in it; returns what it selects. */
  statement(node: JsonObject, outer: Scope | undefined): Relation {
    const scope: Scope = { sources: [], aliases: new Map(), ctes: new Map(), outer };
    const ctes = node["cte_map"];
    for (const cte of objectsOf(isObject(ctes) ? ctes["map"] : undefined)) this.#cte(cte, scope);
    const selected = this.#selected(node, scope);
    const ordering = {
      ...scope,
      sources: [{ ...selected, alias: "" }],
      aliases: new Map<string, boolean>(),
      outer: scope,
    };
    this.#visit(node["modifiers"], ordering);
    return selected;
  }

  #selected(node: JsonObject, scope: Scope): Relation {
    const { left, right, select_list: list } = node;
    if (Array.isArray(list)) return this.#select(node, scope);
    if (!isObject(left) || !isObject(right)) {
      this.#visit(without(node, "cte_map", "modifiers"), scope);
      return OPEN;
    }
    const [first, second] = [this.statement(left, scope), this.statement(right, scope)];
    const columns = first.columns.map((column, i) => ({
      name: column.name,
      isInstant: column.isInstant || second.columns[i]?.isInstant === true,
    }));
    return first.isOpen || second.isOpen ? OPEN : { columns, isOpen: false };
  }

  #select(node: JsonObject, scope: Scope): Relation {
    this.#from(node["from_table"], scope);
    const columns: Column[] = [];
    let isOpen = false;
    for (const item of objectsOf(node["select_list"])) {
      this.#visit(item, scope);
      if (item["class"] === "STAR") {
        const all = starOf(item, scope);
        isOpen ||= all.isOpen || columns.length + all.columns.length > MOST_COLUMNS;
        if (!isOpen) for (const column of all.columns) columns.push(column);
        continue;
      }
      const alias = textOf(item["alias"]);
      const name = foldName(alias || (isColumnRef(item) ? (columnPath(item).at(-1) ?? "") : ""));
      columns.push({ name, isInstant: isInstant(item, this.#rewrites) });
      if (alias !== "") scope.aliases.set(name, isInstant(item, this.#rewrites));
    }
    this.#visit(without(node, "cte_map", "modifiers", "from_table", "select_list"), scope);
    return isOpen ? OPEN : { columns, isOpen };
  }

  #cte({ key, value }: JsonObject, scope: Scope): void {
    const query = isObject(value) && isObject(value["query"]) ? value["query"]["node"] : undefined;
    if (!isObject(value) || !isObject(query)) return;
    const name = foldName(textOf(key));
    const { type, left, right } = query;
    if (type !== "RECURSIVE_CTE_NODE" || !isObject(left) || !isObject(right)) {
      scope.ctes.set(name, renamed(this.statement(query, scope), value["aliases"]));
      return;
    }
    // Its second part reads what the first one has begun. Each is visited once: they may hold such queries in turn.
    scope.ctes.set(name, renamed(this.statement(left, scope), value["aliases"]));
    this.statement(right, scope);
    this.#visit(without(query, "cte_map", "left", "right"), scope);
  }

  #from(from: Json | undefined, scope: Scope): void {
    if (!isObject(from)) return;
    const alias = foldName(textOf(from["alias"]) || textOf(from["table_name"]));
    const add = (relation: Relation) =>
      void scope.sources.push({ ...renamed(relation, from["column_name_alias"]), alias });
    switch (textOf(from["type"])) {
      case "EMPTY":
        return;
      case "JOIN":
        this.#from(from["left"], scope);
        this.#from(from["right"], scope);
        return this.#visit(from["condition"], scope);
      case "BASE_TABLE":
        return add(this.#relation(from, scope));
      case "SUBQUERY": {
        const query = isObject(from["subquery"]) ? from["subquery"]["node"] : undefined;
        return add(isObject(query) ? this.statement(query, scope) : OPEN);
      }
      default:
        this.#visit(Object.values(from), scope);
        return add(OPEN);
    }
  }

  #relation({ table_name: table, schema_name: schema }: JsonObject, scope: Scope): Relation {
    const name = foldName(textOf(table));
    for (let at: Scope | undefined = scope; at !== undefined && textOf(schema) === ""; at = at.outer) {
      const cte = at.ctes.get(name);
      if (cte !== undefined) return cte;
    }
    return this.#tables.get(name) ?? OPEN;
  }

  #visit(value: Json | undefined, scope: Scope): void {
    if (Array.isArray(value)) for (const item of value as readonly Json[]) this.#visit(item, scope);
    if (!isObject(value)) return;
    if (isColumnRef(value)) return this.#decide(value, scope);
    const query = isObject(value["subquery"]) ? value["subquery"]["node"] : undefined;
    if (isObject(query)) this.statement(query, scope);
    for (const [key, child] of Object.entries(value)) if (key !== "subquery") this.#visit(child, scope);
  }

  /** What is in no scope, as fields of structs and parameters of lambdas are not, stays undecided. */
  #decide(column: JsonObject, scope: Scope): void {
    const position = positionOf(column);
    const [name = "", qualifier] = columnPath(column).map(foldName).toReversed();
    if (position === undefined) return;
    for (let at: Scope | undefined = scope; at !== undefined; at = at.outer) {
      const near = at.sources.filter(({ alias }) => qualifier === undefined || alias === qualifier);
      const found = near.flatMap(({ columns }) => byName(columns).get(name) ?? []);
      const alias = qualifier === undefined ? at.aliases.get(name) : undefined;
      if (found.length > 0) this.#decided.set(position, found.includes(true));
      else if (alias !== undefined && !near.some(({ isOpen }) => isOpen)) this.#decided.set(position, alias);
      else if (!near.some(({ isOpen }) => isOpen)) continue;
      return;
    }
  }
}

/** What `*` or `source.*` stands for. */
function starOf(star: JsonObject, { sources }: Scope): Relation {
  const of = foldName(textOf(star["relation_name"]));
  const meant = sources.filter(({ alias }) => of === "" || alias === of);
  const isPlain = ["exclude_list", "qualified_exclude_list", "replace_list", "rename_list", "expr"].every((key) =>
    isEmpty(star[key]),
  );
  if (!isPlain || star["columns"] === true) return OPEN;
  const size = meant.reduce((sum, { columns }) => sum + columns.length, 0);
  if (size > MOST_COLUMNS || meant.some(({ isOpen }) => isOpen)) return OPEN;
  return { columns: meant.flatMap(({ columns }) => columns), isOpen: false };
}

function columnsOf({ columns }: TableShape): Column[] {
  return columns.map(({ name, type }) => ({ name: foldName(name), isInstant: type.kind === "timestamp" }));
}

const maps = new WeakMap<readonly Column[], ReadonlyMap<string, boolean>>();

/** Whether each is an instant. Of two with one name, either. */
function byName(columns: readonly Column[]): ReadonlyMap<string, boolean> {
  const known = maps.get(columns);
  if (known !== undefined) return known;
  const map = new Map<string, boolean>();
  for (const { name, isInstant: is } of columns) map.set(name, is || map.get(name) === true);
  maps.set(columns, map);
  return map;
}

function isEmpty(value: Json | undefined): boolean {
  if (value === undefined || value === null) return true;
  return Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0;
}

/** With other names for its first columns. Which those are is not certain where there may be others among them. */
function renamed({ columns, isOpen }: Relation, aliases: Json | undefined): Relation {
  const names = Array.isArray(aliases) ? (aliases as readonly Json[]).map((name) => foldName(textOf(name))) : [];
  if (names.length === 0) return { columns, isOpen };
  if (isOpen) return OPEN;
  return { columns: columns.map((column, i) => ({ ...column, name: names[i] ?? column.name })), isOpen };
}

function without(node: JsonObject, ...keys: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(node).filter(([key]) => !keys.includes(key)));
}
