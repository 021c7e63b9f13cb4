import { parseArgs } from "node:util";

/** Options of a benchmark's command line; a word that is none of them is an error. */
export type Flags = Readonly<Record<string, { type: "string" | "boolean"; default?: string | boolean }>>;

export type Arguments = {
  text(name: string): string | undefined;
  /** A positive integer. */
  count(name: string): number;
  has(name: string): boolean;
  readonly positionals: readonly string[];
};

export function readArguments(args: readonly string[], options: Flags): Arguments {
  const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
  const text = (name: string) => {
    const value = values[name];
    return typeof value === "string" ? value : undefined;
  };
  return {
    text,
    count: (name) => {
      const value = Number(text(name));
      if (!Number.isSafeInteger(value) || value < 1) throw new Error(`--${name} takes a positive whole number`);
      return value;
    },
    has: (name) => values[name] === true,
    positionals,
  };
}
