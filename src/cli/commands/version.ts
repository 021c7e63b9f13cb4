import type { RegisterCommand } from "../../client/command.ts";
import { withExamples } from "../../client/examples.ts";

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("version")
    .description("Print the version.")
    .option("--json", "print JSON, with what the program is made of");
  withExamples(command, ["engine version", "engine version --json"]).action(
    context.action(async (options: { json?: true }) => {
      const { version } = context.deps;
      if (options.json) {
        const { programFacts } = await import("../program-facts.ts");
        await context.writeJson({ version, ...(await programFacts()) });
      } else await context.writeLine(version);
      return 0;
    }),
  );
};
