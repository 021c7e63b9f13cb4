import { AGENT_HOME } from "./images/images-files.ts";
import type { ExecRequest } from "./runtime.ts";

/** `/usr/local` first, as on Debian. */
const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** The whole environment of a command, as `NAME=value`: what every program expects, the machine's, its own on top. */
export function commandEnv(request: {
  user: ExecRequest["user"];
  hasTerminal: boolean;
  machine: Readonly<Record<string, string>>;
  command: Readonly<Record<string, string>>;
}): string[] {
  const { user, hasTerminal, machine, command } = request;
  const home = user === "root" ? "/root" : AGENT_HOME;
  const all = {
    // What is installed for the agent alone comes before what all have; root does not run it.
    PATH: user === "agent" ? `${AGENT_HOME}/.local/bin:${PATH}` : PATH,
    HOME: home,
    USER: user,
    LOGNAME: user,
    LANG: "C.UTF-8",
    ...(hasTerminal ? { TERM: "xterm-256color" } : {}),
    ...machine,
    ...command,
  };
  return Object.entries(all).map(([name, value]) => `${name}=${value}`);
}
