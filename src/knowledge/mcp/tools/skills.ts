import { z } from "zod";
import { SKILL_LIMITS } from "../../skills/limits.ts";
import { defineTool, truncatedField } from "../tool.ts";

/** Tools about skills: texts that tell a model how something is done here. */

export const listSkills = defineTool({
  name: "list_skills",
  title: "List skills",
  description: "Skills: instructions of this engine's operator. Read one that fits before you begin.",
  role: "read",
  input: z.strictObject({}),
  output: z.object({
    skills: z.array(z.object({ name: z.string(), description: z.string() })),
    truncated: truncatedField,
  }),
  lists: ["skills"],
  run: async ({ deps: { skills } }) => ({ skills: await skills.enabled() }),
});

/** Of one answer: a skill may have more than an answer holds. */
const PART_CHARS = 12_000;

export const readSkill = defineTool({
  name: "read_skill",
  title: "Read a skill",
  description: "The text of a skill of list_skills; of a long one a part, up to `next_offset`.",
  role: "read",
  input: z.strictObject({
    name: z.string().max(SKILL_LIMITS.nameChars),
    offset: z.int().min(0).max(SKILL_LIMITS.bytes).default(0),
  }),
  output: z.object({ content: z.string(), next_offset: z.int().optional(), truncated: truncatedField }),
  run: async ({ deps: { skills } }, { name, offset }) => {
    const text = await skills.read(name);
    const end = endOfPart(text, offset + PART_CHARS);
    return { content: text.slice(offset, end), ...(end < text.length && { next_offset: end }) };
  },
});

/** Not in the middle of a character. */
function endOfPart(text: string, end: number): number {
  return /[\ud800-\udbff]/.test(text.charAt(end - 1)) ? end - 1 : end;
}
