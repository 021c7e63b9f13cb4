import { join } from "node:path";
import type { AuditLog, Origin } from "../../auth/audit.ts";
import type { Caller } from "../../auth/caller.ts";
import { EngineError } from "../../core/errors.ts";
import { nearest } from "../../core/nearest.ts";
import { NOW, type RecordStore } from "../../db/records.ts";
import { skillsIn } from "./folder.ts";
import { SHIPPED_SKILLS } from "./shipped/all.ts";

/**
 * Texts that tell a model how something is done. They come with the program, from `skills` in the home, and from the folder
 * that the operator names; never from data. The installation has one set of enabled ones: those of the program, until
 * somebody chooses.
 */
export type SkillSource = "shipped" | "home" | "directory";

export type SkillItem = {
  /** The folder's where the skill has none that is accepted. */
  name: string;
  description: string | undefined;
  source: SkillSource;
  enabled: boolean;
  /** Why it cannot be enabled; empty where it can. */
  problems: string[];
};

export type SkillList = {
  skills: SkillItem[];
  /** Of the folders. */
  problems: string[];
};

export type SkillsDeps = {
  records: Pick<RecordStore, "rows" | "transact">;
  audit: AuditLog;
  /** The home of the engine, whose folder `skills` is looked at. */
  home: string;
  /** A further folder of skills. */
  directory: string | undefined;
};

type Usable = { name: string; description: string; body: string; source: SkillSource };

type Discovered = {
  /** By name. */
  usable: ReadonlyMap<string, Usable>;
  items: Omit<SkillItem, "enabled">[];
  problems: string[];
};

const KEY = "skills";

const SHIPPED = SHIPPED_SKILLS.map(({ name, description, body }): Usable => {
  return { name, description, body: body.trim(), source: "shipped" };
});

export class Skills {
  readonly #deps: SkillsDeps;

  constructor(deps: SkillsDeps) {
    this.#deps = deps;
  }

  /** All that were found, also those that cannot be enabled. */
  async list(): Promise<SkillList> {
    const { usable, items, problems } = await this.#discover();
    const enabled = new Set(await this.#enabledOf(usable));
    const skills = items.map(({ name, description, source, problems: own }) => {
      return { name, description, source, enabled: own.length === 0 && enabled.has(name), problems: own };
    });
    return { skills, problems };
  }

  /** The enabled ones, as a prompt names them. */
  async enabled(): Promise<{ name: string; description: string }[]> {
    const { usable } = await this.#discover();
    const names = new Set(await this.#enabledOf(usable));
    return [...usable.values()]
      .filter(({ name }) => names.has(name))
      .map(({ name, description }) => ({ name, description }));
  }

  /** The text of an enabled one. @throws EngineError `not_found` */
  async read(name: string): Promise<string> {
    const { usable } = await this.#discover();
    const names = await this.#enabledOf(usable);
    const found = names.includes(name) ? usable.get(name) : undefined;
    if (found !== undefined) return found.body;
    throw new EngineError("not_found", `no skill is enabled by the name ${shown(name)}`, suggestionOf(name, names));
  }

  /**
   * Replaces the set of enabled skills; resolves to it.
   *
   * @throws EngineError `bad_request_body` that names those that are not there, or cannot be enabled
   */
  async enable(names: readonly string[], origin: Origin & { caller: Caller }): Promise<string[]> {
    const { usable, items } = await this.#discover();
    const wanted = [...new Set(names)];
    for (const name of wanted) {
      if (usable.has(name)) continue;
      const problems = items.find((item) => item.name === name)?.problems ?? [];
      if (problems.length > 0) {
        throw new EngineError("bad_request_body", `skills: ${shown(name)} cannot be enabled: ${problems.join("; ")}`);
      }
      throw new EngineError(
        "bad_request_body",
        `skills: there is no skill ${shown(name)}`,
        suggestionOf(name, usable.keys()),
      );
    }
    await this.#deps.records.transact([
      {
        sql:
          "INSERT INTO agent_settings (key, value, updated_by, updated_at_ms) VALUES (?, ?, ?, ?) " +
          "ON CONFLICT (key) DO UPDATE SET value = excluded.value, updated_by = excluded.updated_by, " +
          "updated_at_ms = excluded.updated_at_ms",
        values: [KEY, JSON.stringify(wanted), origin.caller.subject, NOW],
      },
      this.#deps.audit.statement({
        origin,
        action: "agent.skills",
        target: KEY,
        outcome: "ok",
        details: { skills: wanted },
      }),
    ]);
    return wanted;
  }

  /** Of those that were found, the names of the enabled ones. */
  async #enabledOf(usable: ReadonlyMap<string, Usable>): Promise<string[]> {
    const [row] = await this.#deps.records.rows("SELECT value FROM agent_settings WHERE key = ?", [KEY]);
    if (row === undefined)
      return [...usable.values()].filter(({ source }) => source === "shipped").map(({ name }) => name);
    const names = JSON.parse(String(row["value"])) as string[];
    return names.filter((name) => usable.has(name));
  }

  /** Reads the folders anew, so that a new skill needs no restart. Of two of one name the first is used. */
  async #discover(): Promise<Discovered> {
    const { home, directory } = this.#deps;
    const usable = new Map<string, Usable>(SHIPPED.map((skill) => [skill.name, skill]));
    const items: Discovered["items"] = SHIPPED_SKILLS.map(({ name, description }) => {
      return { name, description, source: "shipped", problems: [] };
    });
    const problems: string[] = [];
    const folders = [
      { source: "home", path: join(home, "skills"), mayBeMissing: true },
      ...(directory === undefined ? [] : [{ source: "directory", path: directory, mayBeMissing: false } as const]),
    ] as const;
    for (const { source, path, mayBeMissing } of folders) {
      const contents = await skillsIn(path, { mayBeMissing });
      problems.push(...contents.problems.map((problem) => `${source}: ${problem}`));
      for (const { folder, skill } of contents.skills) {
        const { name = folder, description } = skill;
        const taken = skill.ok ? usable.get(skill.name) : undefined;
        const own = skill.ok ? [] : skill.problems;
        const all = taken === undefined ? own : [`the name is taken by a skill of the source ${taken.source}`];
        items.push({ name, description, source, problems: all });
        if (skill.ok && taken === undefined) usable.set(skill.name, { ...skill, source });
      }
    }
    return { usable, items, problems };
  }
}

function shown(name: string): string {
  return JSON.stringify(name.slice(0, 100));
}

function suggestionOf(name: string, known: Iterable<string>): { suggestion?: string } {
  const suggestion = nearest(name, known);
  return suggestion === undefined ? {} : { suggestion };
}
