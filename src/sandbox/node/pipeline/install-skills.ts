import { AGENTS } from "../../contract/agents/providers.ts";
import type { SandboxSpec, Skill } from "../../contract/spec.ts";
import { cloneRepository, type ClonePorts } from "./clone.ts";
import { AGENT_ROOTS } from "../../contract/agent-folders.ts";
import { CommandFailed, runCommand } from "./run-command.ts";

const PLACE_MS = 60_000;
const COMMIT = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/i;

/** Puts the skills of a sandbox where its agent finds them. Rejects with `CommandFailed`. */
export async function installSkills(
  ports: ClonePorts,
  { agentProvider, skills = [] }: Pick<SandboxSpec, "agentProvider" | "skills">,
): Promise<void> {
  const folder = AGENTS.get(agentProvider)?.skillsFolder;
  if (folder === undefined) throw new Error(`there is no agent provider ${agentProvider}`);
  for (const skill of skills) await installSkill(ports, `${AGENT_ROOTS[0]}/${folder}`, skill);
}

async function installSkill(ports: ClonePorts, folder: string, { source, ref, path, name }: Skill): Promise<void> {
  const clone = `${AGENT_ROOTS[0]}/.cache/engine-skills/${name}`;
  const key = `skill ${name}`;
  await cloneRepository(ports, { url: source, pin: pinOf(ref), path: clone, depth: 1, key });
  try {
    await runCommand(ports, {
      key,
      argv: ["/bin/sh", "-c", PLACE, "sh", clone, path ?? "", folder, name],
      user: "agent",
      env: { LC_ALL: "C" },
      timeoutMs: PLACE_MS,
    });
  } catch (error) {
    throw error instanceof CommandFailed ? new CommandFailed(`${name}: ${error.message}`, error.lines) : error;
  }
}

function pinOf(ref: string | undefined): { kind: "commit" | "ref"; name: string } | undefined {
  if (ref === undefined) return undefined;
  return COMMIT.test(ref) ? { kind: "commit", name: ref.toLowerCase() } : { kind: "ref", name: ref };
}

/**
 * `$1` the clone, `$2` the folder of the skill in it, or nothing, `$3` the folder of all skills, `$4` the skill's name.
 *
 * Links are judged at the place where they stay, for a relative one means another file at each. Of a skill that is
 * refused nothing stays, and nothing of one is run.
 */
const PLACE = `
clone=$1 path=$2 folder=$3 name=$4
fail() { echo "$1" >&2; exit 1; }
is_real() { [ "$(cd -P -- "$1" 2>/dev/null && pwd -P)" = "$1" ]; }
trap 'rm -rf -- "$clone"' EXIT
trap 'exit 1' HUP INT TERM
from=$clone\${path:+/$path} to=$folder/$name
is_real "$from" || fail "there is no folder \${path:-/} in the repository, or there is a link on the way"
[ -f "$from/SKILL.md" ] && [ ! -L "$from/SKILL.md" ] || fail "there is no SKILL.md in \${path:-the repository}"
mkdir -p -- "$folder" && is_real "$folder" || fail "$folder is no folder, or there is a link on the way"
[ ! -e "$to" ] && [ ! -L "$to" ] || fail "$to is there already"
rm -rf -- "$clone/.git" && mv -- "$from" "$to" || exit 1
leaving=$(find "$to" -type l -exec sh -c '
  to=$1; shift
  for link; do
    case $(readlink -- "$link") in
      /*) ;;
      *) case $(readlink -f -- "$link") in "$to" | "$to"/*) continue ;; esac ;;
    esac
    echo "\${link#"$to/"}"
  done' sh "$to" {} +) || leaving="what could not be read"
[ -z "$leaving" ] || { rm -rf -- "$to"; fail "a link leaves the skill: $leaving"; }
echo "the skill $name is in $to"
`;
