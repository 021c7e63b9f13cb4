import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { fileURLToPath } from "node:url";
import { EngineError } from "../../../core/errors.ts";
import {
  decodeFields,
  encodeFields,
  FRAME_HEAD_BYTES,
  frameHead,
  MAX_ANSWER_BYTES,
  MAX_PIECE_BYTES,
  type FrameLetter,
} from "./protocol.ts";
import { HelperRefusal } from "./refusals.ts";
import type { FilesTarget } from "./target.ts";

const SCRIPT = fileURLToPath(new URL("./helper.pl", import.meta.url));
const KEPT_STDERR_CHARS = 2_000;

/**
 * One running `helper.pl`: what is asked of it is asked in turn. Everything here rejects with a `HelperRefusal` where the
 * helper refuses, and with why it ended once it has.
 */
export class HelperProcess {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #exited = Promise.withResolvers<void>();
  #ended: Error | undefined;
  #stderr = "";
  #wake = Promise.withResolvers<void>();

  constructor(perl: string, target: FilesTarget) {
    // Nothing of this program's environment: it may hold secrets, and Perl takes orders from some of it.
    this.#child = spawn(perl, [SCRIPT, ...argumentsOf(target)], { env: {}, cwd: "/", stdio: "pipe" });
    const { stdin, stdout, stderr } = this.#child;
    stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-KEPT_STDERR_CHARS);
    });
    stdout.on("readable", () => this.#rouse());
    stdin.on("drain", () => this.#rouse());
    // That a pipe broke says no more than `close`, which comes with what the process had to say.
    for (const pipe of [stdin, stdout, stderr]) pipe.on("error", () => undefined);
    this.#child.on("error", (error) => {
      this.#end(unavailable(`its helper can't be started: ${error.message}`));
      this.#exited.resolve();
    });
    this.#child.on("exit", () => this.#exited.resolve());
    this.#child.on("close", () => this.#end(this.#lost()));
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get hasEnded(): boolean {
    return this.#ended !== undefined;
  }

  /** Resolves when the process is no more. */
  exited(): Promise<void> {
    return this.#exited.promise;
  }

  /** Ends it; what waits for it rejects with `reason`. It puts away what it has begun. */
  kill(reason: Error): void {
    this.#end(reason);
    this.#child.kill("SIGTERM");
    // Nobody reads what is still in it.
    this.#child.stdout.destroy();
  }

  /** Asks for an operation; resolves to the fields of the answer. */
  async ask(operation: string, fields: readonly (string | Uint8Array)[]): Promise<Buffer[]> {
    await this.send("Q", encodeFields([operation, ...fields]));
    return await this.answer();
  }

  /** Resolves when the helper takes more. */
  async send(letter: FrameLetter, payload: Uint8Array = Buffer.alloc(0)): Promise<void> {
    const { stdin } = this.#child;
    this.#check();
    stdin.cork();
    stdin.write(frameHead(letter, payload.length));
    if (payload.length > 0) stdin.write(payload, () => this.#rouse());
    stdin.uncork();
    while (stdin.writableNeedDrain) await this.#roused();
  }

  /** In as many frames as it takes. Resolves when the helper has them all: nobody reads `bytes` any more. */
  async sendData(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; at += MAX_PIECE_BYTES) {
      await this.send("D", bytes.subarray(at, at + MAX_PIECE_BYTES));
    }
    while (this.#child.stdin.writableLength > 0) await this.#roused();
  }

  /** The next answer: its fields. */
  async answer(): Promise<Buffer[]> {
    const head = await this.#read(FRAME_HEAD_BYTES);
    const sizeBytes = head.readUInt32BE(1);
    if (sizeBytes > MAX_ANSWER_BYTES) throw this.#broken();
    const fields = decodeFields(await this.#read(sizeBytes));
    if (head[0] === LETTER_DONE) return fields;
    if (head[0] !== LETTER_REFUSED) throw this.#broken();
    throw new HelperRefusal(String(fields[0]), String(fields[1]));
  }

  /** Bytes that follow an answer: as many as are there, at least one, at most `maxBytes`. */
  async readSome(maxBytes: number): Promise<Buffer> {
    for (;;) {
      const { stdout } = this.#child;
      const there = Math.min(maxBytes, stdout.readableLength);
      const piece: unknown = there > 0 ? stdout.read(there) : stdout.read(0);
      if (piece instanceof Buffer) return piece;
      this.#check();
      await this.#roused();
    }
  }

  async #read(sizeBytes: number): Promise<Buffer> {
    const pieces: Buffer[] = [];
    for (let missing = sizeBytes; missing > 0;) {
      const piece = await this.readSome(missing);
      missing -= piece.length;
      pieces.push(piece);
    }
    const [first] = pieces;
    return pieces.length === 1 && first !== undefined ? first : Buffer.concat(pieces);
  }

  #broken(): Error {
    this.kill(unavailable("its helper answered out of turn"));
    return this.#ended ?? this.#lost();
  }

  async #roused(): Promise<void> {
    this.#check();
    await this.#wake.promise;
    this.#check();
  }

  #check(): void {
    if (this.#ended !== undefined) throw this.#ended;
  }

  #rouse(): void {
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
  }

  #end(reason: Error): void {
    this.#ended ??= reason;
    this.#rouse();
  }

  #lost(): Error {
    return unavailable(this.#stderr === "" ? "its helper has ended" : `its helper has ended: ${this.#stderr.trim()}`);
  }
}

const LETTER_DONE = 0x4f;
const LETTER_REFUSED = 0x45;

function argumentsOf(target: FilesTarget): string[] {
  const joins = (target.joins ?? []).flatMap((file) => ["join", file]);
  if (target.kind === "live") return [...joins, "live", String(target.pid)];
  const machine = target.pid === undefined ? [] : ["machine", String(target.pid)];
  const volumes = (target.volumes ?? []).flatMap(({ path, mountPath, readOnly }) => [
    readOnly ? "read-only-volume" : "volume",
    path,
    mountPath,
  ]);
  return [
    ...joins,
    ...machine,
    ...volumes,
    "mounted",
    target.root,
    String(target.firstHostId),
    ...(target.covered ?? []),
  ];
}

function unavailable(why: string): EngineError {
  return new EngineError("unavailable", `the sandbox's files can't be reached: ${why}`);
}
