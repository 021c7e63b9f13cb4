/** What a model reads before it does something of a kind. */
export type Skill = { name: string; description: string; body: string };

/** The text of `SKILL.md`. */
export function skillText({ name, description, body }: Skill): string {
  return `---\nname: ${name}\ndescription: ${JSON.stringify(description)}\n---\n\n${body}`;
}
