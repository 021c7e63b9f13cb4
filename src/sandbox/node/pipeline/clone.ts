import { sleep, type Clock } from "../../../core/clock.ts";
import type { SetupSources } from "../../network/egress/egress.ts";
import type { GitRepo } from "../../contract/spec.ts";
import { CommandFailed, runCommand, type CommandPorts } from "./run-command.ts";

export type ClonePorts = CommandPorts & { sources: Pick<SetupSources, "plainHttp">; clock: Clock };

/** What is cloned; a pin of the kind `ref` is a branch, or a tag where there is none. `key`: as of a command. */
type Cloned = Pick<GitRepo, "url" | "path" | "depth" | "credentialId"> & {
  pin: GitRepo["pin"] | { kind: "ref"; name: string };
  /** Patterns of paths that are not checked out, as in a `.gitignore`; none by default. */
  exclusions?: readonly string[] | undefined;
  key: string;
};

const CLONE_MS = 1_800_000;
/** Before the second try, and the third, which is the last. */
const PAUSES_MS = [2_000, 8_000];

/**
 * Clones a repository, as the agent's user, by the sandbox's own way out. What only the network is to blame for is tried
 * again. Rejects with `CommandFailed`.
 */
export async function cloneRepository(ports: ClonePorts, repo: Cloned): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await runClone(ports, { ...repo, key: `${repo.key}.${attempt}` });
    } catch (error) {
      const pauseMs = PAUSES_MS[attempt];
      if (pauseMs === undefined || !(error instanceof CommandFailed) || !isNetworkFailure(error.lines)) {
        throw error instanceof CommandFailed ? new CommandFailed(`${repo.url}: ${error.message}`, error.lines) : error;
      }
      const line = `${repo.url} was not reached; trying again in ${pauseMs / 1_000} s`;
      ports.recorder.event("log_line", { line, stream: "stderr" });
      await sleep(ports.clock, pauseMs, ports.signal);
    }
  }
}

async function runClone(ports: ClonePorts, repo: Cloned): Promise<void> {
  const { url, pin, path, depth, key, credentialId, exclusions = [] } = repo;
  const arguments_ = [url, path, pin?.kind ?? "", pin?.name ?? "", depth === undefined ? "" : String(depth)];
  // The environment of the machine leads git to the gateway, which is on loopback; nothing is to lead it elsewhere.
  const isRouted = credentialId !== undefined;
  const rules = [ports.sources.plainHttp || isRouted ? "always" : "never", isRouted ? "false" : "initial"];
  await runCommand(ports, {
    key,
    argv: ["/bin/sh", "-c", CLONE, "sh", ...arguments_, ...rules, exclusions.map((one) => `!${one}`).join("\n")],
    user: "agent",
    // No configuration but what the script says, no questions, and messages in one language.
    env: {
      LC_ALL: "C",
      GIT_TERMINAL_PROMPT: "0",
      GIT_ASKPASS: "",
      SSH_ASKPASS: "",
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_CONFIG_GLOBAL: "/dev/null",
      ...(isRouted ? {} : { GIT_CONFIG_COUNT: "0" }),
    },
    timeoutMs: CLONE_MS,
  });
}

/** What git says of servers that are not reached, or break off; a server that refuses is none of these. */
const OF_THE_NETWORK = [
  /could not resolve|failed to connect|couldn't connect|could not connect/i,
  /timed out|too slow|empty reply|early EOF|unexpected disconnect|hung up unexpectedly|transfer closed/i,
  /connection (?:was )?(?:reset|refused|closed)|recv failure|send failure|(?:SSL|TLS)[_ ](?:read|write|connect)/i,
  /not closed cleanly|recv error|non-properly terminated/i,
  /returned error: (?:429|5\d\d)|response 5\d\d|code 5\d\d from proxy/i,
];

function isNetworkFailure(lines: readonly string[]): boolean {
  return lines.some((line) => /^(?:fatal|error):/.test(line) && OF_THE_NETWORK.some((sign) => sign.test(line)));
}

/**
 * `$1` URL, `$2` folder, `$3` and `$4` what it is pinned to, `$5` depth, `$6` whether plain HTTP is allowed, `$7` which
 * redirects are followed, `$8` lines of what is not checked out.
 *
 * Nothing that comes with a repository is run: neither hooks, nor submodules, nor filters. A folder that was not empty is
 * left as it is; of a clone that fails nothing stays.
 */
const CLONE = `
url=$1 dest=$2 pin=$3 name=$4 depth=\${5:+--depth=$5} http=$6 redirects=$7 excluded=$8
fail() { echo "$1" >&2; exit 1; }
command -v git >/dev/null || fail "the image has no git"
at=$dest
while [ ! -e "$at" ] && [ ! -L "$at" ]; do at=\${at%/*}; done
[ "$(cd -P -- "$at" 2>/dev/null && pwd -P)" = "$at" ] || fail "$at is no folder, or there is a link on the way"
mkdir -p -- "$dest" || exit 1
[ -z "$(ls -A -- "$dest")" ] || fail "$dest is there already, and not empty"
git() {
  command git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c credential.helper= -c submodule.recurse=false \\
    -c fetch.recurseSubmodules=false -c protocol.allow=never -c protocol.https.allow=always \\
    -c protocol.http.allow="$http" -c http.followRedirects="$redirects" -c http.lowSpeedLimit=1000 -c http.lowSpeedTime=60 -c advice.detachedHead=false \\
    -c init.defaultBranch=main "$@"
}
trap '[ $? = 0 ] || find "$dest" -mindepth 1 -delete' EXIT
trap 'exit 1' HUP INT TERM
cd -- "$dest" || exit 1
sparse() {
  [ -n "$excluded" ] || return 0
  mkdir -p .git/info && printf '%s\\n' '/*' "$excluded" > .git/info/sparse-checkout && git config core.sparseCheckout true
}
begin() { git init -q --template= . && git remote add origin "$url" && sparse; }
clone() {
  git clone -q $depth --no-checkout --no-recurse-submodules --template= "$@" -- "$url" . && sparse || exit 1
  if git rev-parse -q --verify HEAD >/dev/null; then git read-tree -mu HEAD || exit 1; fi
}
heads='+refs/heads/*:refs/remotes/origin/*'
if [ -n "$depth" ]; then heads=; fi
case $pin in
  tag)
    begin && git fetch -q $depth --no-tags origin $heads "refs/tags/$name:refs/tags/$name" &&
      git checkout -q --detach "refs/tags/$name" || exit 1 ;;
  commit)
    begin || exit 1
    if [ -n "$heads" ]; then git fetch -q origin $heads || exit 1; fi
    git cat-file -e "$name^{commit}" 2>/dev/null || git fetch -q $depth origin "$name" || exit 1
    git checkout -q --detach "$name" || exit 1
    [ "$(git rev-parse HEAD)" = "$name" ] || fail "$name is no commit" ;;
  branch)
    clone --branch "$name"
    git show-ref -q --verify "refs/remotes/origin/$name" || fail "there is no branch $name" ;;
  ref) clone --branch "$name" ;;
  *) clone ;;
esac
echo "$url is at $(git rev-parse -q --verify HEAD || echo 'no commit: it is empty') in $dest"
`;
