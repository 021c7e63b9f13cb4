import { spawn, type ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createReadStream } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { constants, setPriority } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../core/clock.ts";
import { systemCodeOf } from "../../core/errors.ts";
import { nodeProgram } from "../../core/isolate.ts";
import type { Log } from "../../core/log.ts";
import { processEnv } from "../../io/confinement/environment.ts";
import { libraryFiles } from "../kql/library.ts";

/**
 * The V8 start-up snapshot of the translator: the heap of a process that has loaded the library and built its grammar.
 * With it a translator is ready after 0.2 s instead of 1.5. It holds for one build of Node and one of the library, which
 * are in the name of its file, as is the digest of its bytes: V8 does not look whether they are whole.
 *
 * It only saves time: where it is stale or damaged another is built, and where none can be there is none.
 */
export type StartupSnapshotOptions = {
  /** A folder for this alone; others may use it at the same time. */
  folder: string;
  log: Log;
  clock: Clock;
};

const BUILD_TIMEOUT_MS = 120_000;
/** What a server that was killed left of a build. */
const ABANDONED_MS = 600_000;
const SUFFIX = ".blob";
const KEPT_STDERR_CHARS = 2_000;

/** Runs at the end of the script that is frozen. Uses what most queries use, so that V8 has compiled it. */
const WARM_UP = `
const { KustoCode, GlobalState, Symbols } = globalThis.Kusto.Language;
const types = Symbols.ScalarTypes;
const columns = [["at", types.DateTime], ["label", types.String], ["n", types.Long], ["props", types.Dynamic]];
const table = new Symbols.TableSymbol.$ctor4("T", columns.map(([name, type]) => new Symbols.ColumnSymbol(name, type)));
const globals = GlobalState.Default.WithDatabase(new Symbols.DatabaseSymbol.ctor("db", [table]));
const text = "let f = (x: long) { x + 1 }; T | where at > ago(1h) and label has 'x' | extend m = f(n), p = tostring(props.a)" +
  " | summarize count(), avg(m) by bin(at, 5m), label | join kind=inner (T | project label, n) on label | top 10 by count_";
const code = KustoCode.ParseAndAnalyze(text, globals);
if (globalThis.Bridge.toArray(code.GetDiagnostics()).length > 0) throw new Error("the warm-up of the library is refused");
`;

export class StartupSnapshot {
  readonly #options: StartupSnapshotOptions;
  #builder: ChildProcess | undefined;
  #building: Promise<void> | undefined;
  #isClosed = false;

  constructor(options: StartupSnapshotOptions) {
    this.#options = options;
  }

  /** The path of one that fits this process and is whole; undefined when there is none. */
  async find(): Promise<string | undefined> {
    try {
      const prefix = await prefixOf();
      for (const name of await this.#names()) {
        if (!name.startsWith(prefix) || !name.endsWith(SUFFIX)) continue;
        const path = join(this.#options.folder, name);
        if (name === `${prefix}${await digestOf(path)}${SUFFIX}`) return path;
        await this.discard(path, "its bytes are not those that were written");
      }
    } catch (error) {
      this.#options.log.warn({ err: error }, "the start-up snapshot of the KQL translator cannot be read");
    }
    return undefined;
  }

  /** Deletes one that is of no use. */
  async discard(path: string, reason: string): Promise<void> {
    this.#options.log.warn({ path, reason }, "a start-up snapshot of the KQL translator is deleted");
    await rm(path, { force: true });
  }

  /** Builds one, once in the life of this object. Never rejects: the next start of the server tries again. */
  build(): Promise<void> {
    this.#building ??= this.#build().catch((error: unknown) => {
      if (this.#isClosed) return;
      this.#options.log.warn({ err: error }, "no start-up snapshot of the KQL translator: it starts more slowly");
    });
    return this.#building;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#builder?.kill("SIGKILL");
    await this.#building;
  }

  async #build(): Promise<void> {
    const { folder } = this.#options;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const own = await mkdtemp(join(folder, "build-"));
    try {
      const [script, made] = [join(own, "library.cjs"), join(own, "made.blob")];
      await writeFile(script, await scriptOf(), { mode: 0o600 });
      await this.#run(["--snapshot-blob", made, "--build-snapshot", script], own);
      const prefix = await prefixOf();
      await rename(made, join(folder, `${prefix}${await digestOf(made)}${SUFFIX}`));
      await this.#sweep(prefix);
    } finally {
      await rm(own, { recursive: true, force: true });
    }
  }

  async #run(args: readonly string[], cwd: string): Promise<void> {
    const { clock } = this.#options;
    if (this.#isClosed) throw new Error("the server is stopping");
    const builder = spawn(nodeProgram(), args, { cwd, env: processEnv(), stdio: ["ignore", "ignore", "pipe"] });
    this.#builder = builder;
    if (builder.pid !== undefined) setPriority(builder.pid, constants.priority.PRIORITY_LOW);
    let stderr = "";
    builder.stderr.setEncoding("utf8").on("data", (text: string) => {
      stderr = (stderr + text).slice(-KEPT_STDERR_CHARS);
    });
    const timer = clock.after(BUILD_TIMEOUT_MS, () => builder.kill("SIGKILL"));
    try {
      const [code, signal] = (await once(builder, "close")) as [number | null, NodeJS.Signals | null];
      if (code !== 0) throw new Error(`the build ended with ${signal ?? `code ${code}`}: ${stderr.trim()}`);
    } finally {
      timer.cancel();
    }
  }

  /** Deletes those of other builds of the library under this Node, and what is left of builds that were killed. */
  async #sweep(prefix: string): Promise<void> {
    const { folder, clock } = this.#options;
    for (const name of await this.#names()) {
      const path = join(folder, name);
      const isOlder = name.startsWith(NODE) && name.endsWith(SUFFIX) && !name.startsWith(prefix);
      const isAbandoned = name.startsWith("build-") && clock.nowMs() - (await changedMs(path)) > ABANDONED_MS;
      if (isOlder || isAbandoned) await rm(path, { recursive: true, force: true });
    }
  }

  async #names(): Promise<string[]> {
    try {
      return await readdir(this.#options.folder);
    } catch (error) {
      if (systemCodeOf(error) === "ENOENT") return [];
      throw error;
    }
  }
}

const NODE = `node-${process.version}-${process.platform}-${process.arch}-`;

/** What the names begin with of all that fit this Node and this library. */
async function prefixOf(): Promise<string> {
  const sizes = await Promise.all([nodeProgram(), ...libraryFiles()].map(async (file) => (await stat(file)).size));
  const key = [process.versions.v8, WARM_UP, ...sizes].join("\n");
  return `${NODE}${createHash("sha256").update(key).digest("hex").slice(0, 16)}-`;
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 })) hash.update(chunk as Uint8Array);
  return hash.digest("hex");
}

/** The library in one script: a script that is frozen can load modules of Node's only. */
async function scriptOf(): Promise<string> {
  const texts = await Promise.all(libraryFiles().map((file) => readFile(file, "utf8")));
  // One of them would export itself as a module instead of defining globals.
  const hidden = texts.map((text) => `(function (module, exports, require) {${text}\n}).call(globalThis);\n`);
  return `${hidden.join("")}(function () {${WARM_UP}})();\n`;
}

async function changedMs(path: string): Promise<number> {
  try {
    return (await stat(path)).mtimeMs;
  } catch (error) {
    if (systemCodeOf(error) === "ENOENT") return Infinity;
    throw error;
  }
}
