/**
 * The long form of `test/sandboxes/adapters.long.test.ts`: all real agents, or those that are named, each with three ways to
 * deny tools. As root, on Linux; what is not in the cache comes from npm, up to 500 MiB for each.
 *
 *     node scripts/adapters.ts [agent provider…]
 *
 * Prints for each its version, how long it took to start, and what did not hold; exits with 1 where that is anything.
 */
import { REAL_AGENTS, TOOL_RULES } from "../test/sandboxes/real-agent-tools.ts";
import { RealAgentLab } from "../test/sandboxes/real-agents.ts";

const named = process.argv.slice(2);
const providers = named.length > 0 ? named : [...REAL_AGENTS.keys()];
const lab = await RealAgentLab.open(providers);
try {
  for (const provider of providers) {
    for (const rules of TOOL_RULES) {
      const { package: name, startedMs, talkedMs, requests, problems } = await lab.run(provider, rules);
      const outcome = problems.length === 0 ? "holds" : "FAILS";
      const times = `started in ${startedMs} ms, talked for ${talkedMs} ms, asked ${requests} times`;
      console.log(`${outcome}  ${provider}, ${name}, tools by ${rules}: ${times}`);
      for (const problem of problems) console.log(`  ${problem}`);
      if (problems.length > 0) process.exitCode = 1;
    }
  }
  console.log(
    "what holds: the turn ended, the allowed tool ran, the denied ones did not, the provider alone had the key",
  );
} finally {
  await lab.close();
}
