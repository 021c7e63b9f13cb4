import { closeSync, constants, fstatSync, openSync, readFileSync, writeSync } from "node:fs";
import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { systemCodeOf } from "../../core/errors.ts";

const heldSchema = z.object({
  sandboxId: z.uuid(),
  /** What was claimed; absent when only the disk is kept, until the job comes to this node again. */
  job: z
    .object({
      id: z.string(),
      holder: z.string(),
      fence: z.int(),
      leaseMs: z.int(),
      attempt: z.int(),
      /** Ids of those that it may fetch; absent: none. */
      credentials: z.array(z.string()).optional(),
    })
    .optional(),
  /** Whether the disk stays when the machine is lost. */
  keepsDisk: z.boolean(),
  /** Whether the machine's provisioning scripts have ended: they are not run again on this disk. */
  isProvisioned: z.boolean(),
  /** When `timeout_secs` have passed, in ms since 1970. */
  deadlineAtMs: z.int().optional(),
  /** The step of setting it up that is under way, with the hosts that it lets the sandbox reach. */
  openSetup: z.object({ step: z.string(), hosts: z.array(z.string()) }).optional(),
  /** The command of the newest process of its agent. */
  agentExecId: z.uuid().optional(),
  /** The certificate authority that the machine trusts, and its key, both in PEM: made when it is first needed. */
  authority: z.object({ key: z.string(), certificate: z.string() }).optional(),
});

/** What a node knows of one of its sandboxes, for a later process of this node. */
export type Held = z.infer<typeof heldSchema>;

const SUFFIX = ".json";
const TURNS_SUFFIX = ".turns";

/** One small file for each sandbox, always whole, and another one with the turns that its agent was told of. */
export class HeldFiles {
  readonly #folder: string;
  /** Of turns that are being written, by sandbox. */
  readonly #turns = new Map<string, TurnsFile>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** All of them; files that do not parse are left out, and what they were about is swept as unknown. */
  async readAll(): Promise<Held[]> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const all: Held[] = [];
    const names = await readdir(this.#folder);
    for (const name of names.filter((one) => one.endsWith(SUFFIX))) {
      const held = await readJson(join(this.#folder, name), heldSchema);
      if (held !== undefined) all.push(held);
    }
    const known = new Set(all.flatMap(({ sandboxId }) => [`${sandboxId}${SUFFIX}`, `${sandboxId}${TURNS_SUFFIX}`]));
    for (const name of names) if (!known.has(name)) await rm(join(this.#folder, name), { force: true });
    return all;
  }

  read(sandboxId: string): Promise<Held | undefined> {
    return readJson(this.#pathOf(sandboxId), heldSchema);
  }

  /** What is known of a disk that stays outlives the computer's crashes; of others nothing needs to. */
  async write(held: Held): Promise<void> {
    await writeJson(this.#pathOf(held.sandboxId), held, { isDurable: held.keepsDisk });
  }

  async remove(sandboxId: string): Promise<void> {
    this.closeTurns(sandboxId);
    await rm(this.#turnsPathOf(sandboxId), { force: true });
    await rm(this.#pathOf(sandboxId), { force: true });
  }

  /**
   * Turns that the agent of a sandbox was told of. Written at once, for a prompt waits for it. Of a computer that crashes
   * all turns end. The file stays open until `closeTurns`.
   */
  writeTurns(sandboxId: string, turnIds: readonly string[]): void {
    const file = this.#turns.get(sandboxId) ?? new TurnsFile(this.#turnsPathOf(sandboxId));
    this.#turns.set(sandboxId, file);
    file.write(turnIds);
  }

  closeTurns(sandboxId: string): void {
    this.#turns.get(sandboxId)?.close();
    this.#turns.delete(sandboxId);
  }

  readTurns(sandboxId: string): readonly string[] {
    try {
      return readFileSync(this.#turnsPathOf(sandboxId), "utf8").split("\n").filter(Boolean);
    } catch (error) {
      if (systemCodeOf(error) === "ENOENT") return [];
      throw error;
    }
  }

  #pathOf(sandboxId: string): string {
    return join(this.#folder, `${sandboxId}${SUFFIX}`);
  }

  #turnsPathOf(sandboxId: string): string {
    return join(this.#folder, `${sandboxId}${TURNS_SUFFIX}`);
  }
}

/** One line for each turn, and empty ones. */
class TurnsFile {
  readonly #descriptor: number;
  #size: number;

  constructor(path: string) {
    this.#descriptor = openSync(path, constants.O_WRONLY | constants.O_CREAT, 0o600);
    this.#size = fstatSync(this.#descriptor).size;
  }

  /** In one write, which covers what was there: a process that is killed has noted them, or those before. */
  write(turnIds: readonly string[]): void {
    const text = turnIds.map((id) => `${id}\n`).join("");
    const bytes = Buffer.from(text.padEnd(this.#size, "\n"));
    writeSync(this.#descriptor, bytes, 0, bytes.length, 0);
    this.#size = bytes.length;
  }

  close(): void {
    closeSync(this.#descriptor);
  }
}

/** What a node knows of one sandbox, in memory and in its file. */
export class HeldSandbox {
  readonly #files: HeldFiles;
  #held: Held;
  /** One after the other: the newest is the last. */
  #writing: Promise<void> = Promise.resolve();

  constructor(files: HeldFiles, held: Held) {
    this.#files = files;
    this.#held = held;
  }

  get now(): Held {
    return this.#held;
  }

  /** Turns that the agent was told of, by an earlier process of the node or by this one. */
  get begunTurns(): readonly string[] {
    return this.#files.readTurns(this.#held.sandboxId);
  }

  set begunTurns(turnIds: readonly string[]) {
    this.#files.writeTurns(this.#held.sandboxId, turnIds);
  }

  /** Nothing more is said of turns here. */
  close(): void {
    this.#files.closeTurns(this.#held.sandboxId);
  }

  async update(change: Partial<Omit<Held, "sandboxId">>): Promise<void> {
    this.#held = { ...this.#held, ...change };
    const write = () => this.#files.write(this.#held);
    const writing = this.#writing.then(write, write);
    this.#writing = writing;
    await writing;
  }
}

/** Undefined when there is no such file, or none of this shape. */
export async function readJson<T>(path: string, schema: z.ZodType<T>): Promise<T | undefined> {
  try {
    return schema.safeParse(JSON.parse(await readFile(path, "utf8"))).data;
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT" || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** The file has either what it had or this, also when this process is killed; and when the computer is, if asked for. */
export async function writeJson(path: string, value: unknown, { isDurable = true } = {}): Promise<void> {
  const temporary = `${path}.new`;
  const file = await open(temporary, "w", 0o600);
  try {
    await file.writeFile(JSON.stringify(value));
    if (isDurable) await file.datasync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
}
