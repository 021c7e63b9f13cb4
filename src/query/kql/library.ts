import { createRequire } from "node:module";

/**
 * The official parser and binder of KQL. It is C# that was compiled to JavaScript: two files that define the globals
 * `Bridge`, `System` and `Kusto`. A process that starts from a V8 snapshot of them (`translator/startup-snapshot.ts`) has
 * the globals already; any other loads the files, which takes 0.25 s, and its first analysis builds the grammar for 1.1 s.
 */
const PACKAGE = "@kusto/language-service-next";
const FILES = ["bridge.min.js", "Kusto.Language.Bridge.min.js"];

const load = createRequire(import.meta.url);

/** The paths of its files, in the order in which they are loaded. Throws when the package is not installed. */
export function libraryFiles(): string[] {
  return FILES.map((file) => load.resolve(`${PACKAGE}/${file}`));
}

let isMended = false;

/** Sees that the globals are there. */
export function loadLibrary(): void {
  if (isMended) return;
  if (!("Kusto" in globalThis)) for (const file of libraryFiles()) load(file);
  mendEquality();
  isMended = true;
}

type Comparable = { equals: (this: object, other: unknown) => boolean };

/**
 * Its 64-bit integers throw where they are compared with null or with a text. The binder does that where a function of the
 * text's is called with a long and then with `long(null)` or `''`: it keeps what came of calls by their constant arguments.
 */
function mendEquality(): void {
  const { System } = globalThis as unknown as { System: Record<"Int64" | "UInt64", { prototype: Comparable }> };
  for (const { prototype } of [System.Int64, System.UInt64]) {
    const compare = prototype.equals;
    prototype.equals = function equals(other) {
      return other !== null && other !== undefined && typeof other !== "string" && compare.call(this, other);
    };
  }
}
