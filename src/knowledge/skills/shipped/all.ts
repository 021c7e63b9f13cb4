import { DEPLOY } from "./deploy.ts";
import { MEMORY } from "./memory.ts";
import type { Skill } from "./skill.ts";
import { SQL } from "./sql.ts";
import { TIME_TRAVEL } from "./time-travel.ts";

/** The skills that come with the program. They are text in its code: the single file has no folders. */
export const SHIPPED_SKILLS: readonly Skill[] = [SQL, TIME_TRAVEL, MEMORY, DEPLOY];
