import type { RegisterCommand } from "../../client/command.ts";
import { withExamples } from "../../client/examples.ts";

export const register: RegisterCommand = (program, context) => {
  const command = program.command("version").description("Print the version.").option("--json", "print JSON");
  withExamples(command, ["engine version", "engine version --json"]).action(
    context.action(async (options: { json?: true }) => {
      const { version } = context.deps;
      if (options.json) await context.writeJson({ version });
      else await context.writeLine(version);
      return 0;
    }),
  );
};
