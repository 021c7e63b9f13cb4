import { lstat, mkdir, readlink, realpath, symlink } from "node:fs/promises";
import { join, resolve } from "node:path";
import { Option } from "commander";
import type { RegisterCommand } from "../../../client/command.ts";
import type { CliContext } from "../../../client/context.ts";
import { withExamples } from "../../../client/examples.ts";
import { CliError, EXIT } from "../../../client/failure.ts";
import { visible } from "../../../client/text.ts";
import { messageOf, systemCodeOf } from "../../../core/errors.ts";
import { agentHome } from "../install/agent-home.ts";
import { planFolder, writeFolder } from "../install/owned-folder.ts";
import { skillText } from "../../skills/shipped/skill.ts";
import { SKILLS } from "../install/skills.ts";

type Which = keyof typeof SKILLS | "both";
type Flags = { target: string; which: Which; alsoLinkClaude?: true };

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("install-skill")
    .description(
      "Write skills for coding agents, DIR/<name>/SKILL.md: how to query, ingest and remember (data), and how to deploy " +
        "(deploy). A file that somebody else wrote or changed is never overwritten.",
    )
    .requiredOption("--target <dir>", "folder of skills")
    .addOption(new Option("--which <skill>", "what to write").choices(["data", "deploy", "both"]).default("data"))
    .option("--also-link-claude", "link each skill into ~/.claude/skills");
  withExamples(command, [
    "engine install-skill --target .agents/skills",
    "engine install-skill --target ~/skills --which both --also-link-claude",
  ]).action(context.action((flags: Flags) => installSkills(context, flags)));
};

async function installSkills(context: CliContext, { target, which, alsoLinkClaude }: Flags): Promise<number> {
  if (target.trim() === "") throw new CliError("--target names no folder", EXIT.usage);
  const folder = resolve(target);
  const skills = which === "both" ? Object.values(SKILLS) : [SKILLS[which]];
  // All of it is looked at before anything is written.
  const plans = await Promise.all(
    skills.map((skill) =>
      planFolder(join(folder, skill.name), [{ path: "SKILL.md", text: skillText(skill), mode: 0o644 }], {
        force: false,
        isOursAlone: false,
        advice: "move it away, or choose another --target",
      }),
    ),
  );
  const agent = alsoLinkClaude === true ? await agentHome(context) : undefined;
  const links = agent === undefined ? [] : skills.map(({ name }) => join(agent, "skills", name));
  for (const [i, link] of links.entries()) await checkLink(link, plans[i]?.folder ?? "");
  for (const plan of plans) {
    const isNew = await writeFolder(plan, context.deps.random);
    await context.writeLine(`${visible(join(plan.folder, "SKILL.md"))} ${isNew ? "is written" : "is there already"}`);
  }
  for (const [i, link] of links.entries()) {
    await makeLink(link, plans[i]?.folder ?? "");
    await context.writeLine(`${visible(link)} leads to it`);
  }
  return EXIT.ok;
}

/** @throws CliError where the name of the link is taken by something else */
async function checkLink(link: string, folder: string): Promise<"missing" | "there"> {
  try {
    const found = await lstat(link);
    if (found.isSymbolicLink() && resolve(link, "..", await readlink(link)) === folder) return "there";
    // The folder of skills may be the agent's own.
    if ((await realpath(link)) === (await realpath(folder).catch(() => undefined))) return "there";
  } catch (error) {
    if (systemCodeOf(error) !== "ENOENT") throw cannotLink(link, error);
    if ((await lstat(link).catch(() => undefined)) === undefined) return "missing";
  }
  throw new CliError(`${visible(link)} exists and leads elsewhere; nothing was changed`);
}

async function makeLink(link: string, folder: string): Promise<void> {
  if ((await checkLink(link, folder)) === "there") return;
  try {
    await mkdir(join(link, ".."), { recursive: true });
    await symlink(folder, link);
  } catch (error) {
    throw cannotLink(link, error);
  }
}

function cannotLink(link: string, error: unknown): CliError {
  return new CliError(`cannot make the link ${visible(link)}: ${visible(messageOf(error))}`, EXIT.failed, {
    cause: error,
  });
}
