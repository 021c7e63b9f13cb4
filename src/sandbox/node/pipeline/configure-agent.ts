import { defaultAgentConfig } from "../../contract/agents/providers.ts";
import { SUBAGENT_FILES } from "../../contract/agents/subagent-files.ts";
import type { SandboxSpec } from "../../contract/spec.ts";
import { AGENT_ROOTS } from "../../contract/agent-folders.ts";
import { runCommand, type CommandPorts } from "./run-command.ts";

const WRITE_MS = 60_000;

/** `$1` the folder, `$2` the file in it, `$3` its content. One that the image has is left as it is. */
const WRITE = `
folder=$1 file=$1/$2
fail() { echo "$1" >&2; exit 1; }
mkdir -p -- "$folder" && [ "$(cd -P -- "$folder" && pwd -P)" = "$folder" ] ||
  fail "$folder is no folder, or there is a link on the way"
[ ! -e "$file" ] && [ ! -L "$file" ] || fail "$file is there already"
printf %s "$3" > "$file" && echo "wrote $file"
`;

/** Tells the agent of its subagents, where it looks for them. Rejects with `CommandFailed`. */
export async function configureAgent(
  ports: CommandPorts,
  { agentProvider, agentConfig, subagents = [] }: Pick<SandboxSpec, "agentProvider" | "agentConfig" | "subagents">,
): Promise<void> {
  const files = SUBAGENT_FILES.get(agentProvider);
  if (files === undefined) throw new Error(`the agent ${agentProvider} takes no subagents`);
  const config = agentConfig ?? defaultAgentConfig(agentProvider);
  for (const subagent of subagents) {
    const { name } = subagent;
    const folder = `${AGENT_ROOTS[0]}/${files.folder}`;
    await runCommand(ports, {
      key: `subagent ${name}`,
      argv: ["/bin/sh", "-c", WRITE, "sh", folder, `${name}.md`, files.content(subagent, config)],
      user: "agent",
      timeoutMs: WRITE_MS,
    });
  }
}
