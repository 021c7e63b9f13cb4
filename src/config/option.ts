import type { Kind } from "./kinds.ts";

/** One row of the table of options: see `options.ts`. */
export interface Option<T> {
  /** The environment variable; some options live in the file only. */
  readonly env?: string;
  /** The key in the TOML file, with its tables. */
  readonly toml?: string;
  /** The flag of the command line that sets it. */
  readonly flag?: string;
  readonly kind: Kind<T>;
  /** The value when nothing sets it. */
  defaultOf(context: DefaultContext): T;
  /** The default as the reference prints it. */
  readonly defaultShown: string;
  /** The option that the default is derived from, so that its origin can be told. */
  readonly derivedFrom?: string;
  /** What does not hold between the value and other options, as a sentence; undefined when all is well. Not asked while it is unset. */
  relation?(value: T, others: Related, name: string): string | undefined;
  /** Who reads it: the server, the client (command line), or both. */
  readonly side: "S" | "C" | "SC";
  /** Holds something that must not be printed; `kind.hide` knows which part. */
  readonly secret?: true;
  readonly doc: string;
}

/** What defaults may depend on. */
export interface DefaultContext {
  readonly userHome: string;
  /** Processor cores that this process may use. */
  readonly cores: number;
  readonly home: string;
  readonly localDb: string;
  readonly serverPort: number | undefined;
  /** Of the rows above, by their names. */
  readonly values: Readonly<Record<string, unknown>>;
}

/** The whole configuration, for what an option has to do with others. */
export interface Related {
  /** By the names of the options. */
  readonly values: Readonly<Record<string, unknown>>;
  /** What set the option. */
  readonly originOf: (name: string) => string;
  /** The variable, its value and what set it, for a message. */
  readonly shown: (name: string) => string;
}

type Row<T> = Omit<Option<T>, "defaultOf" | "defaultShown" | "derivedFrom">;

export function option<T>(row: Row<T> & { default: NoInfer<T> }): Option<T> {
  return { ...row, defaultOf: () => row.default, defaultShown: row.kind.format(row.default) };
}

type Derivation<T> = { defaultShown: string; derivedFrom?: string; defaultOf: (context: DefaultContext) => NoInfer<T> };

export function derived<T>(row: Row<T> & Derivation<T>): Option<T> {
  return row;
}

/** An option that may stay unset; `whenUnset` says what happens then. */
export function optional<T>(row: Row<T> & { whenUnset: string }): Option<T | undefined> {
  return { ...row, kind: row.kind, defaultOf: () => undefined, defaultShown: row.whenUnset };
}

/** A number that must not pass that of another option. */
export function notAbove(other: string): (value: number, others: Related, name: string) => string | undefined {
  return (value, { values, shown }, name) =>
    value > (values[other] as number) ? `${shown(name)} must not pass ${shown(other)}` : undefined;
}

/** The options of one feature, by the names of their values. */
export type OptionRows = Readonly<Record<string, Option<unknown>>>;

/** The values of a feature's options. */
export type OptionValues<Rows> = {
  readonly [K in keyof Rows]: Rows[K] extends Option<infer T> ? T : never;
};

/**
 * The configuration with what it says about a feature's own options.
 * Throws for a configuration that was loaded without the feature.
 */
export function valuesOf<Rows extends OptionRows, C extends object>(rows: Rows, config: C): C & OptionValues<Rows> {
  const missing = Object.keys(rows).find((name) => !Object.hasOwn(config, name));
  if (missing !== undefined) throw new Error(`the configuration was loaded without the option ${missing}`);
  return config as C & OptionValues<Rows>;
}
