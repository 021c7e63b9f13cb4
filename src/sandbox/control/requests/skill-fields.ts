import { z } from "zod";
import type { Skill } from "../../contract/spec.ts";
import { ref } from "./setup-fields.ts";
import { repositoryName, toRepositoryUrl } from "../../contract/repository-url.ts";

/** The field `skills` of a create request. */

const MAX_SKILLS = 32;
const PATH_CHARS = 1_024;
/** That of the format, and what folders are called that were made before it. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const NAME_RULE = "accepted are up to 64 letters, digits, `.`, `_` and `-`, a letter or digit first";

const skill = z.strictObject({
  source: z
    .string()
    .transform(toSource)
    .describe("Of a repository of git: https://, without user, query and fragment."),
  ref: ref.nullish().describe("A branch or tag, or a whole commit; that of the server by default."),
  path: z
    .string()
    .max(PATH_CHARS)
    .refine(isPathInside, "accepted are relative paths without `.`, `..` and `.git`")
    .nullish()
    .describe("The folder of the skill, which has its `SKILL.md`; all of the repository by default."),
  name: z
    .string()
    .regex(NAME, NAME_RULE)
    .nullish()
    .describe("The last part of the path, or the repository's, by default."),
});

export const skillsField = z
  .array(skill)
  .max(MAX_SKILLS)
  .default([])
  .describe("Put where the agent finds skills when the sandbox is made; one that is none fails it. Needs the network.");

/** Reports what does not fit together to the context. */
export function toSkills(
  given: z.output<typeof skillsField>,
  context: Pick<z.RefinementCtx, "addIssue">,
): readonly Skill[] {
  const taken = new Set<string>();
  return given.map(({ source, ref: at, path, name: called }, i) => {
    const name = called ?? path?.split("/").at(-1) ?? repositoryName(source);
    const refuse = (message: string) => context.addIssue({ code: "custom", message, path: ["skills", i, "name"] });
    if (!NAME.test(name)) refuse(`it has to be given, for ${JSON.stringify(name)} is none: ${NAME_RULE}`);
    else if (taken.has(name)) refuse("another skill has the same name");
    taken.add(name);
    return { source, ref: at ?? undefined, path: path ?? undefined, name };
  });
}

/** The field that says the same, with every value. */
export function fromSkills(skills: readonly Skill[] = []): Record<string, unknown>[] {
  return skills.map(({ source, ref: at = null, path = null, name }) => ({ source, ref: at, path, name }));
}

function toSource(value: string, context: z.RefinementCtx): string {
  const url = toRepositoryUrl(value);
  if (url !== undefined) return url;
  const message = "accepted are https:// URLs of up to 2,048 characters, without user, query and fragment";
  context.addIssue({ code: "custom", message });
  return z.NEVER;
}

function isPathInside(path: string): boolean {
  if (!path.isWellFormed() || /\p{Cc}/u.test(path)) return false;
  return path.split("/").every((part) => part !== "" && part !== "." && part !== ".." && part.toLowerCase() !== ".git");
}
