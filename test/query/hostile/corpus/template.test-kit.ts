/**
 * A valid statement with slots, written `‹kind:text›`. The text is what a valid statement has there, and the slot's
 * name as well: slots with the same text are replaced together, so that an alias and what refers to it stay one.
 */
export type Template = { parts: readonly Part[] };

type Part = string | Slot;
export type Slot = { kind: SlotKind; name: string };

/** What stands in the slot: a name of something, a text literal, or a whole expression. */
export type SlotKind = NameKind | "text" | "expression";
type NameKind = (typeof NAME_KINDS)[number];

const NAME_KINDS = [
  "alias",
  "collation",
  "column",
  "cte",
  "field",
  "function",
  "lambda",
  "schema",
  "star",
  "table",
  "type",
  "window",
] as const;

const SLOT = /‹([a-z]+):([^›]*)›/;

export function parseTemplate(text: string): Template {
  // `split` keeps what the groups took: text, kind, name, text, kind, name, …
  const pieces = text.split(SLOT);
  const parts = pieces.flatMap((piece, i): Part[] => {
    if (i % 3 === 0) return [piece];
    return i % 3 === 1 ? [{ kind: piece as SlotKind, name: pieces[i + 1] ?? "" }] : [];
  });
  return { parts };
}

/** Names of the slots, each once, with the kinds that it is used as. */
export function slotsOf({ parts }: Template): ReadonlyMap<string, ReadonlySet<SlotKind>> {
  const slots = new Map<string, Set<SlotKind>>();
  for (const part of parts) {
    if (typeof part === "string") continue;
    slots.set(part.name, (slots.get(part.name) ?? new Set()).add(part.kind));
  }
  return slots;
}

export function isName(kind: SlotKind): kind is NameKind {
  return (NAME_KINDS as readonly string[]).includes(kind);
}

/** The statement with `fill` in its slots; slots for which that is undefined keep what is valid there. */
export function render({ parts }: Template, fill: (slot: Slot) => string | undefined = () => undefined): string {
  return parts.map((part) => (typeof part === "string" ? part : (fill(part) ?? validText(part)))).join("");
}

function validText({ kind, name }: Slot): string {
  return kind === "text" ? `'${name}'` : name;
}
