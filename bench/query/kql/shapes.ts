import type { ScalarTypeName } from "../../../src/format/types.ts";
import { arrayOf, library } from "../../../src/query/kql/bind/library.ts";
import type { KqlTable } from "../../../src/query/kql/contract.ts";

type Diagnostic = { Severity: string; Code: string; Message: string; Start: number; Length: number };

const ROUNDS = 12;

/**
 * Tables that a text may mean: for a text of the world there are none here. Names that the binder does not know as tables
 * become tables, those that it does not know as columns become columns of all of them, and what it wants of their types,
 * they get.
 */
export function shapesOf(text: string): KqlTable[] {
  const shape: Shape = { tables: fuzzyTables(text), columns: new Map(), retyped: new Set() };
  for (let round = 0; round < ROUNDS; round++) {
    const found = diagnosticsOf(text, shape);
    // What is computed in the text is unknown after another mistake alone: last of all it is a column.
    const isNew = found
      .map((one) => take(shape, text, one, (name) => !isComputed(text, name)))
      .some((isTaken) => isTaken);
    if (!isNew && !found.slice(0, 1).some((one) => take(shape, text, one, () => true))) break;
  }
  return [...shape.tables].map((name) => ({
    name,
    columns: [...shape.columns].map(([column, kind]) => ({ name: column, type: { kind } })),
  }));
}

type Shape = { tables: Set<string>; columns: Map<string, ScalarTypeName>; retyped: Set<string> };

/** Of a union that is fuzzy the binder asks for no tables. */
function fuzzyTables(text: string): Set<string> {
  if (!/isfuzzy\s*=\s*true/i.test(text)) return new Set();
  const named = new Set([...text.matchAll(/\blet\s+(\w+)/g)].map(([, name = ""]) => name));
  const legs = [...text.matchAll(/(?<![\w~])\(\s*([A-Za-z_]\w*)\s*(?=[|)])/g)].map(([, name = ""]) => name);
  return new Set(legs.filter((name) => !named.has(name)));
}

/** Takes from one diagnostic what it says of the tables; whether that was news. */
function take(
  shape: Shape,
  text: string,
  { Message, Start, Length }: Diagnostic,
  isOpen: (name: string) => boolean,
): boolean {
  const { tables, columns } = shape;
  const name = nameIn(text.slice(Start, Start + Length));
  if (name !== undefined && /does not refer to any known table/.test(Message)) return addTo(tables, name);
  if (name !== undefined && /does not refer to any known column/.test(Message)) {
    const of = /([A-Za-z_]\w*)\s*\.\s*$/.exec(text.slice(0, Start))?.[1];
    if (of !== undefined) return retype(shape, of, "dynamic");
    if (columns.has(name) || !isOpen(name)) return false;
    columns.set(name, typeOf(name, text));
    return true;
  }
  const near = name !== undefined && columns.has(name) ? name : nameBefore(text, Start, Length, columns);
  const wanted = /element access/.test(Message) ? "dynamic" : typeIn(Message);
  return near !== undefined && wanted !== undefined && retype(shape, near, wanted);
}

function isComputed(text: string, name: string): boolean {
  return new RegExp(String.raw`\b${name}\b["'\]]*\s*=(?![=~])`).test(text);
}

/** The last column that is mentioned in the place, or in front of it. */
function nameBefore(
  text: string,
  start: number,
  length: number,
  columns: ReadonlyMap<string, unknown>,
): string | undefined {
  const inside = text.slice(start, start + length).match(/[A-Za-z_]\w*/g) ?? [];
  const before = text.slice(Math.max(0, start - 80), start).match(/[A-Za-z_]\w*/g) ?? [];
  return [...before, ...inside].findLast((name) => columns.has(name));
}

function addTo(set: Set<string>, name: string): boolean {
  if (set.has(name)) return false;
  set.add(name);
  return true;
}

/** What it is compared with, or else what a column of that name holds in the schemas of such queries. */
function typeOf(name: string, text: string): ScalarTypeName {
  const compared = new RegExp(String.raw`\b${name}\s*(?:[=!<>]=|[<>]|!?in\s*\(|between\s*\()\s*(-?\d|true\b|false\b)`);
  const other = compared.exec(text)?.[1];
  if (other !== undefined) return /[tf]/.test(other) ? "bool" : "long";
  if (/(^timestamp|time(generated|stamp)?|date|datetime|_t)$/i.test(name)) return "timestamp";
  if (
    /^(additionalfields|.*properties|.*details|.*resources|.*policies|entities|.*info|tags|.*_dynamic)$/i.test(name)
  ) {
    return "dynamic";
  }
  if (/(count|size|port|bytes|_d|duration|number)$/i.test(name)) return "long";
  return "string";
}

const WANTED: readonly [RegExp, ScalarTypeName][] = [
  [/datetime/, "timestamp"],
  [/dynamic|bag|array/, "dynamic"],
  [/number|summable|integer|\blong|\bint\b|real|compatible with arguments \(string\)/, "long"],
  [/bool/, "bool"],
  [/string/, "string"],
];

function typeIn(message: string): ScalarTypeName | undefined {
  return WANTED.find(([words]) => words.test(message))?.[1];
}

/** Each once: a column that is wanted as two types stays as it is then. */
function retype({ columns, retyped }: Shape, name: string, type: ScalarTypeName): boolean {
  if (!columns.has(name) || columns.get(name) === type || retyped.has(name)) return false;
  retyped.add(name);
  columns.set(name, type);
  return true;
}

/** A name as it is written, or the first of a path. */
function nameIn(text: string): string | undefined {
  const bracketed = /^\[\s*(["'])(.*?)\1\s*\]/.exec(text);
  if (bracketed !== null) return bracketed[2];
  return /^[\p{L}_]\w*/u.exec(text)?.[0];
}

function diagnosticsOf(text: string, { tables, columns }: Shape): Diagnostic[] {
  const { KustoCode, GlobalState, Symbols } = library();
  const own = [...tables].map(
    (name) =>
      new Symbols.TableSymbol.$ctor4(
        name,
        [...columns].map(([column, kind]) => {
          const type = Symbols.ScalarTypes.GetSymbol(kind === "timestamp" ? "datetime" : kind);
          return new Symbols.ColumnSymbol(column, type, null, null, null, null);
        }),
      ),
  );
  const database = new Symbols.DatabaseSymbol.ctor("corpus", own);
  const code = KustoCode.ParseAndAnalyze(text, GlobalState.Default?.WithDatabase(database) ?? null);
  return arrayOf<Diagnostic>(code?.GetDiagnostics()).filter(({ Severity }) => Severity === "Error");
}
