import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../core/clock.ts";
import { messageOf, StartupError, systemCodeOf } from "../core/errors.ts";
import type { Contents } from "./contents.ts";
import { checkRuns, isWhole, openFolder, runtimeFolders, UnusableFolder } from "./folders.ts";
import { inTurn } from "./turn.ts";
import { DamagedProgram, unpack, type Program } from "./unpack.ts";
import { markUse, sweep } from "./uses.ts";

export type PrepareDeps = { env: NodeJS.ProcessEnv; uid: number; clock: Clock };

/** The folder with the program, which is unpacked at the first start. @throws StartupError */
export async function prepare(program: Program, deps: PrepareDeps): Promise<string> {
  const roots = runtimeFolders(deps.env, deps.uid);
  const problems: string[] = [];
  for (const use of [useUnpacked, unpackInto]) {
    for (const root of roots) {
      try {
        if (await use(root, program, deps)) return join(root, program.contents.id);
      } catch (error) {
        problems.push(problemOf(root, error));
      }
    }
  }
  throw new StartupError(whyNot([...new Set(problems)], program.contents));
}

function useUnpacked(root: string, { contents }: Program, { uid, clock }: PrepareDeps): boolean {
  const folder = join(root, contents.id);
  if (!isThere(root, contents, uid)) return false;
  checkRuns(folder);
  markUse(root, contents.id, clock);
  // Another version may have removed it in between, which does that after a week without a start.
  return existsSync(folder);
}

/** A start looks into folders that may not exist, and makes none that it does not need. */
function isThere(root: string, contents: Contents, uid: number): boolean {
  try {
    return isWhole(join(root, contents.id), contents, uid);
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "EACCES"].includes(systemCodeOf(error) ?? "")) return false;
    throw error;
  }
}

async function unpackInto(root: string, program: Program, deps: PrepareDeps): Promise<boolean> {
  const { uid, clock } = deps;
  const { contents } = program;
  openFolder(root, uid);
  await inTurn(join(root, `lock-${contents.id}`), clock, async () => {
    if (isWhole(join(root, contents.id), contents, uid)) return;
    await unpack(root, program);
    sweep(root, contents.id, clock);
  });
  return useUnpacked(root, program, deps);
}

/** Throws what is no property of the folder. */
function problemOf(root: string, error: unknown): string {
  if (error instanceof UnusableFolder) return error.message;
  if (error instanceof DamagedProgram) {
    throw new StartupError(`${process.execPath} is damaged (${error.message}): download it again`, 1, error);
  }
  const reason = REASONS[systemCodeOf(error) ?? ""];
  if (reason === undefined) throw new StartupError(`cannot unpack into ${root}: ${messageOf(error)}`, 1, error);
  return `${root}: ${reason}`;
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EPERM: "permission denied",
  EROFS: "the file system is read-only",
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  ENOTDIR: "a part of the path is not a folder",
  EEXIST: "a part of the path is not a folder",
  ENOENT: "it cannot be made",
};

const MIB = 1024 * 1024;
/** Node, beside the files of the archive. */
const NODE_MIB = 150;

function whyNot(problems: readonly string[], { sizeBytes }: Contents): string {
  const neededMib = Math.ceil(sizeBytes / MIB) + NODE_MIB;
  const tried = problems.length === 0 ? "this user has no home folder" : problems.join("; ");
  return (
    `cannot unpack the program: ${tried}. ` +
    `Set ENGINE_RUNTIME_DIR to a folder of this user with ${neededMib} MiB free, where programs may be run`
  );
}
