import { Readable } from "node:stream";
import { systemClock } from "../../../core/clock.ts";
import { createLog } from "../../../core/log.ts";
import { createSandboxFiles, type SandboxFiles } from "./files.ts";
import { startMachine, type TestMachine } from "./machine.test-kit.ts";

export const HOME = "/home/agent";
export const NEVER: AbortSignal = new AbortController().signal;

export type FilesLab = { machine: TestMachine; files: SandboxFiles; said: string[]; remove(): Promise<void> };

/** The files of a real machine, with a log that is kept. */
export async function openLab(options: { diskMb?: number; isDurable?: boolean } = {}): Promise<FilesLab> {
  const machine = await startMachine(options);
  const said: string[] = [];
  const log = createLog("trace", { write: (line) => void said.push(line) });
  const { isDurable = true } = options;
  const files = createSandboxFiles({ target: () => machine.target(), clock: systemClock, log, isDurable });
  const remove = async (): Promise<void> => {
    await files.end();
    await machine.remove();
  };
  return { machine, files, said, remove };
}

export function bodyOf(...pieces: (string | Uint8Array)[]): Readable {
  return Readable.from(
    pieces.map((piece) => Buffer.from(piece)),
    { objectMode: false },
  );
}

export async function put(files: SandboxFiles, path: string, text: string | Uint8Array): Promise<void> {
  await files.put({ path }, bodyOf(text), NEVER);
}

export async function textOf(files: SandboxFiles, path: string): Promise<string> {
  return (await bytesOf((await files.get({ path }, NEVER)).body)).toString("utf8");
}

export async function bytesOf(body: Readable): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of body) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}

export async function namesIn(files: SandboxFiles, path: string): Promise<string[]> {
  const { entries } = await files.list({ path }, NEVER);
  return entries.map((entry) => entry.path.slice(path === "/" ? 1 : path.length + 1));
}

/** What it fails with. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
    return "nothing";
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : String(error);
  }
}
