import type { Skills } from "../../skills/skills.ts";
export type SkillRouteDeps = { skills: Skills };
export const SKILL_ROUTES = [] as const;
