import { AGENTS } from "../../contract/agents/providers.ts";

/** The agents need a newer Node.js than Debian's; it comes from where they come from, for the processor of the server. */
const NODE = "22.23.3";

/** Templates of agent providers, for build requests without one: Debian, Node.js, and the agent at a pinned version. */
export const DEFAULT_TEMPLATES: ReadonlyMap<string, string> = new Map(
  [...AGENTS].map(([provider, { package: agent }]) => [
    provider,
    [
      'base = "debian"',
      "[packages]",
      'apt = ["git", "nodejs", "npm", "ripgrep"]',
      `npm = ["node-linux-${process.arch}@${NODE}", "${agent}"]`,
      "",
    ].join("\n"),
  ]),
);
