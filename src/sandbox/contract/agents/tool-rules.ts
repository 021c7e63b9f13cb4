import type { AgentConfig } from "../spec.ts";

/** What an agent may use. */
export type AgentRules = Pick<AgentConfig, "toolsEnabled" | "allowedTools" | "deniedTools">;

/** Whether the agent may not use all that it has. */
export function restrictsTools({ toolsEnabled, allowedTools, deniedTools }: AgentRules): boolean {
  return !toolsEnabled || allowedTools.length > 0 || deniedTools.length > 0;
}

/**
 * Whether a tool may be used that the agent calls by these names (its kind, its title and its name, as far as it says
 * them): `denied_tools` come before `allowed_tools`, of which none stands for all.
 */
export function mayUse(rules: AgentRules, names: readonly string[]): boolean {
  const isOneOf = (patterns: readonly string[]) => patterns.some((one) => names.some((name) => matches(one, name)));
  if (!rules.toolsEnabled || isOneOf(rules.deniedTools)) return false;
  return rules.allowedTools.length === 0 || isOneOf(rules.allowedTools);
}

/** `*` stands for any text. Each part is looked for where the one before ended, so that no pattern takes long. */
function matches(pattern: string, name: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  const last = rest.pop();
  if (last === undefined) return name === pattern;
  if (!name.startsWith(first)) return false;
  let at = first.length;
  for (const part of rest) {
    const found = name.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return name.length - last.length >= at && name.endsWith(last);
}
