import { rm } from "node:fs/promises";
import { isAbsolute, join, normalize } from "node:path";
import { z } from "zod";
import type { CliContext } from "../client/context.ts";
import { CliError, EXIT } from "../client/failure.ts";
import { readIfThere, writeDurably } from "../core/durable-file.ts";
import { tryLock } from "../db/sqlite/process-lock.ts";

/**
 * A deployment's folder, `$ENGINE_HOME/deployments/<name>/`: what was asked for (`deployment.json`), and what its target
 * keeps beside it. One command at a time works in it.
 */

/** Of the folder as a whole: a program refuses a newer one. */
const FORMAT = 1;
const SPEC_FILE = "deployment.json";

export const TARGETS = ["cloud", "local"] as const;
export type TargetName = (typeof TARGETS)[number];

const specSchema = z.strictObject({
  format: z.literal(FORMAT),
  name: z.string(),
  target: z.enum(TARGETS),
  settings: z.record(z.string(), z.unknown()),
});
export type DeploymentSpec = z.infer<typeof specSchema>;

const NAME = /^[a-z](?:[a-z0-9-]{0,30}[a-z0-9])?$/;

/** A name that is safe as a folder, in a host name and as a prefix of cloud resources. @throws CliError */
export function deploymentName(text: string): string {
  if (NAME.test(text)) return text;
  const expected = "1 to 32 lower-case letters, digits and hyphens, beginning with a letter and not ending in a hyphen";
  throw new CliError(`--name is ${JSON.stringify(text.slice(0, 80))}; expected ${expected}`, EXIT.usage);
}

/** A file of the workspace; `path` is relative to its folder. Its mode is 0600. */
export type WorkspaceFile = { path: string; text: string; isSecret: boolean };

export type Prepared = {
  /** Kept in the specification of the deployment, and checked by the target when it is read. */
  settings: Readonly<Record<string, unknown>>;
  files: readonly WorkspaceFile[];
  /** The command lines that `up` runs, for people to read. */
  commands: readonly string[];
};

export class Workspace {
  readonly name: string;
  /** ENGINE_HOME. */
  readonly home: string;
  readonly folder: string;
  readonly context: CliContext;
  readonly #lockFile: string;

  /** @throws CliError for a name that no deployment can have */
  constructor(context: CliContext, home: string, name: string) {
    this.name = deploymentName(name);
    this.home = home;
    this.folder = join(home, "deployments", this.name);
    // Beside the folder: the folder comes and goes.
    this.#lockFile = join(home, "deployments", `.${this.name}.lock`);
    this.context = context;
  }

  /** A file of the workspace. The path is one of the program's own; one that leaves the folder is a fault. */
  path(relative: string): string {
    const path = normalize(relative);
    if (isAbsolute(path) || path.split("/").includes("..")) throw new Error(`${relative} is outside of the workspace`);
    return join(this.folder, path);
  }

  async read(relative: string): Promise<string | undefined> {
    return await readIfThere(this.path(relative));
  }

  /** For this user alone (0600), whole or not at all. */
  async write(relative: string, text: string): Promise<void> {
    await writeDurably(this.path(relative), text, 0o600, this.context.deps.random);
  }

  /** JSON of a known shape; undefined where there is none. @throws CliError for anything else */
  async readJson<T>(relative: string, schema: z.ZodType<T>): Promise<T | undefined> {
    const text = await this.read(relative);
    return text === undefined ? undefined : parseState(this.path(relative), text, schema);
  }

  async writeJson(relative: string, value: unknown): Promise<void> {
    await this.write(relative, `${JSON.stringify(value, undefined, 2)}\n`);
  }

  /** What `init` was asked for; undefined before it. @throws CliError for a newer format, or a damaged file */
  async findSpec(): Promise<DeploymentSpec | undefined> {
    return await this.readJson(SPEC_FILE, specSchema);
  }

  /** @throws CliError where there is no such deployment */
  async spec(): Promise<DeploymentSpec> {
    const spec = await this.findSpec();
    if (spec !== undefined) return spec;
    throw new CliError(
      `there is no deployment ${this.name} (${this.folder}); \`engine deploy init --name ${this.name}\` makes one`,
    );
  }

  /** The specification comes last: a workspace without one is none. */
  async create(target: TargetName, { settings, files }: Prepared): Promise<void> {
    for (const { path, text } of files) await this.write(path, text);
    await this.writeJson(SPEC_FILE, specOf(this.name, target, settings));
  }

  async remove(): Promise<void> {
    // Without its specification it is no deployment, wherever the removal is interrupted.
    await rm(this.path(SPEC_FILE), { force: true });
    await rm(this.folder, { recursive: true, force: true, maxRetries: 3 });
  }

  /** Runs a task while no other command works on this deployment. @throws CliError where one does */
  async alone<T>(task: () => Promise<T>): Promise<T> {
    const lock = tryLock(this.#lockFile);
    if (lock === undefined) {
      throw new CliError(`another \`engine deploy\` is working on ${this.name}: wait for it to end`);
    }
    try {
      return await task();
    } finally {
      lock.release();
    }
  }
}

export function specOf(name: string, target: TargetName, settings: Prepared["settings"]): DeploymentSpec {
  return { format: FORMAT, name, target, settings: { ...settings } };
}

/** @throws CliError that names the file: one of a newer program, or a damaged one */
export function parseState<T>(file: string, text: string, schema: z.ZodType<T>): T {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw damaged(file, "it is no JSON");
  }
  const { format } = z.object({ format: z.number() }).safeParse(value).data ?? {};
  if (format !== undefined && format > FORMAT) {
    throw new CliError(`${file} was written by a newer engine (format ${format}); run \`engine update\` first`);
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw damaged(file, `${issue?.path.map(String).join(".") || "it"}: ${issue?.message ?? "unexpected"}`);
}

function damaged(file: string, why: string): CliError {
  return new CliError(`${file} is damaged (${why.slice(0, 200)}): put it back from a copy`);
}
