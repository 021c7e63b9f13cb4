import { constants, open, readdir, realpath, type FileHandle } from "node:fs/promises";
import { join, sep } from "node:path";
import { messageOf, systemCodeOf } from "../../core/errors.ts";
import { visible } from "../../core/visible.ts";
import { SKILL_LIMITS } from "./limits.ts";
import { parseSkill, type ParsedSkill } from "./skill-file.ts";

export type FolderSkill = { folder: string; skill: ParsedSkill };

export type FolderContents = {
  skills: FolderSkill[];
  /** Of the folder itself. */
  problems: string[];
};

/**
 * The skills of a folder: each is a folder in it with a file `SKILL.md`, in the order of their names. What is reached by a
 * link must lie in the folder. Problems name no path of this machine.
 */
export async function skillsIn(folder: string, { mayBeMissing }: { mayBeMissing: boolean }): Promise<FolderContents> {
  let root: string;
  let names: string[];
  try {
    root = await realpath(folder);
    const entries = await readdir(root, { withFileTypes: true });
    names = entries
      .filter((entry) => !entry.name.startsWith(".") && (entry.isDirectory() || entry.isSymbolicLink()))
      .map(({ name }) => name);
  } catch (error) {
    if (mayBeMissing && systemCodeOf(error) === "ENOENT") return { skills: [], problems: [] };
    return { skills: [], problems: [`the folder cannot be read: ${reasonOf(error)}`] };
  }
  names.sort((a, b) => (a < b ? -1 : 1));
  const kept = names.slice(0, SKILL_LIMITS.perFolder);
  const problems =
    kept.length < names.length
      ? [`the folder has ${names.length} folders; only the first ${kept.length} are looked at`]
      : [];
  const skills: FolderSkill[] = [];
  for (const name of kept) {
    const skill = await skillAt(root, name);
    if (skill !== undefined) skills.push({ folder: visible(name), skill });
  }
  return { skills, problems };
}

/** Undefined where there is no `SKILL.md`. */
async function skillAt(root: string, name: string): Promise<ParsedSkill | undefined> {
  try {
    const file = await realpath(join(root, name, "SKILL.md"));
    if (!file.startsWith(root.endsWith(sep) ? root : root + sep))
      return refused("a link leads out of the folder of skills");
    // Nothing is followed any more, and nothing waits for the other end of a pipe.
    const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      return await skillOf(handle);
    } finally {
      await handle.close();
    }
  } catch (error) {
    const code = systemCodeOf(error);
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    return refused(`SKILL.md cannot be read: ${reasonOf(error)}`);
  }
}

async function skillOf(handle: FileHandle): Promise<ParsedSkill> {
  if (!(await handle.stat()).isFile()) return refused("SKILL.md is no regular file");
  const bytes = Buffer.alloc(SKILL_LIMITS.bytes + 1);
  let length = 0;
  for (;;) {
    const { bytesRead } = await handle.read(bytes, length, bytes.length - length, length);
    length += bytesRead;
    if (length > SKILL_LIMITS.bytes) return refused(`SKILL.md has more than ${SKILL_LIMITS.bytes} bytes`);
    if (bytesRead === 0) break;
  }
  try {
    return parseSkill(new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(0, length)));
  } catch (error) {
    if (error instanceof TypeError) return refused("SKILL.md is not UTF-8");
    throw error;
  }
}

function refused(problem: string): ParsedSkill {
  return { ok: false, name: undefined, description: undefined, problems: [problem] };
}

/** What the system says has paths in it; its code has none. */
function reasonOf(error: unknown): string {
  return systemCodeOf(error) ?? messageOf(error);
}
