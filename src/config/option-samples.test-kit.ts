import { expect, test } from "vitest";
import { FEATURE_ROWS } from "../../roles/features.test-kit.ts";
import { StartupError } from "../core/errors.ts";
import { loadConfig, type ConfigSources, type LoadedConfig } from "./load.ts";
import type { Sample } from "./load-samples.test-kit.ts";
import type { OptionRows } from "./option.ts";
import type { Config } from "./options.ts";

const WORLD = { workingDir: "/somewhere", userHome: "/home/u", cores: 4 };

/** The configuration of a world without a disk, with the options of all features. */
export function load(sources: Partial<ConfigSources> = {}): Loaded {
  return loadConfig({ env: {}, ...WORLD, rows: FEATURE_ROWS, ...sources });
}

/** Features have options that the type of the configuration does not name. */
type Loaded = Omit<LoadedConfig, "config"> & { config: Config & Readonly<Record<string, unknown>> };

/** The same, with that text as its file. */
export function loadToml(text: string, sources: Partial<ConfigSources> = {}) {
  return load({ ...sources, env: { ENGINE_CONFIG: "/etc/engine/engine.toml", ...sources.env }, readFile: () => text });
}

/** What it throws, which must be a `StartupError`. */
export function failure(run: () => unknown): StartupError {
  try {
    run();
  } catch (error) {
    if (error instanceof StartupError) return error;
    throw error;
  }
  throw new Error("it was accepted");
}

const FILE = "/etc/engine/engine.toml";
const assignment = (key: string, text: string) => `${key} = ${text}\n`;

const refusals = <R extends { bad: string[] }>(rows: readonly R[]) =>
  rows.flatMap((row) => row.bad.map((text) => ({ ...row, text })));

/** Tests that options can be set in every place, and take no other texts than they should. Every option has a sample. */
export function checkSamples<Rows extends OptionRows>(rows: Rows, samples: Readonly<Record<keyof Rows, Sample>>): void {
  const ALL = Object.entries(rows).map(([name, row]) => Object.assign({ name }, row, samples[name]));
  const IN_ENV = ALL.flatMap((row) => (row.env === undefined ? [] : [{ ...row, env: row.env }]));
  const IN_FILE = ALL.flatMap((row) => (row.toml === undefined ? [] : [{ ...row, toml: row.toml }]));
  const IN_BOTH = IN_ENV.flatMap((row) => (row.toml === undefined ? [] : [{ ...row, toml: row.toml }]));

  test("every option can be set somewhere", () => {
    expect(ALL.filter((row) => row.env === undefined && row.toml === undefined)).toEqual([]);
  });

  test.for(IN_ENV)("$env sets $name", ({ name, env, one: [text, value] }) => {
    const { config, origins } = load({ env: { [env]: ` ${text} ` }, readFile: () => "" });
    expect(config[name]).toEqual(value);
    expect(origins[name]).toBe(env);
  });

  test.for(IN_ENV)("$env counts as unset when it is empty", ({ name, env }) => {
    const { config, origins, warnings } = load({ env: { [env]: "  " } });
    expect(config[name]).toEqual(load().config[name]);
    expect(origins[name]).toBe("default");
    expect(warnings).toEqual([]);
  });

  test.for(IN_FILE)("$toml sets $name, in its own form and as text", ({ name, toml, one, two }) => {
    const [text, value, native = JSON.stringify(text)] = one;
    const { config, origins, warnings } = loadToml(assignment(toml, native));
    expect(config[name]).toEqual(value);
    expect(origins[name]).toBe(`${toml} in ${FILE}`);
    expect(warnings).toEqual([]);
    expect(loadToml(assignment(toml, JSON.stringify(two[0]))).config[name]).toEqual(two[1]);
  });

  test.for(IN_BOTH)("$env wins over $toml", ({ name, env, toml, one, two }) => {
    const inFile = assignment(toml, JSON.stringify(one[0]));
    const { config, origins } = loadToml(inFile, { env: { [env]: two[0] } });
    expect(config[name]).toEqual(two[1]);
    expect(origins[name]).toBe(env);
  });

  test.for(IN_BOTH)("a flag wins over $env and $toml", ({ name, env, toml, one, two }) => {
    const inFile = assignment(toml, JSON.stringify(two[0]));
    const { config } = loadToml(inFile, { env: { [env]: two[0] }, flags: { [name]: one[0] } });
    expect(config[name]).toEqual(one[1]);
  });

  test.for(refusals(IN_ENV))("$env does not take $text", ({ env, kind, text }) => {
    const error = failure(() => load({ env: { [env]: text } }));
    expect(error.exitCode).toBe(2);
    expect(error.message.startsWith(`${env} is "`)).toBe(true);
    expect(error.message).toContain(`expected ${kind.accepts}`);
    expect(error.message).not.toContain("hunter2");
  });

  test.for(refusals(ALL))("a flag for $name does not take $text", ({ name, kind, flag, text }) => {
    const error = failure(() => load({ flags: { [name]: text } }));
    expect(error.exitCode).toBe(2);
    expect(error.message.startsWith(`${flag ?? name} is "`)).toBe(true);
    expect(error.message).toContain(`expected ${kind.accepts}`);
    expect(error.message).not.toContain("hunter2");
  });

  const FILE_REFUSALS = IN_FILE.flatMap(({ toml, kind, badToml = [] }) =>
    badToml.map((value) => ({ toml, kind, value })),
  );

  test.for(FILE_REFUSALS)("$toml does not take $value", ({ toml, kind, value }) => {
    const error = failure(() => loadToml(assignment(toml, value)));
    expect(error.exitCode).toBe(2);
    expect(error.message).toContain(`${toml} in ${FILE} is `);
    expect(error.message).toContain(`expected ${kind.accepts}`);
  });
}

/** Tests that nothing set means just these values. */
export function checkDefaults<Rows extends OptionRows>(
  rows: Rows,
  defaults: Readonly<Record<keyof Rows, unknown>>,
): void {
  test("the defaults are those of the specification", () => {
    const { config, origins, warnings } = load();
    const names = Object.keys(rows);
    expect(Object.fromEntries(names.map((name) => [name, config[name]]))).toEqual(defaults);
    expect(names.filter((name) => origins[name] !== "default")).toEqual([]);
    expect(warnings).toEqual([]);
  });
}
