import { describeConfig, type DescribedOption } from "../../config/describe.ts";
import { withExamples } from "../../client/examples.ts";
import type { RegisterCommand } from "../../client/command.ts";
import { renderTable, textCell } from "../../client/table.ts";

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("config")
    .description("Print the effective configuration and where each value came from; secrets are left out.")
    .option("--config <file>", "TOML file with options (ENGINE_CONFIG)")
    .option("--json", "print JSON");
  withExamples(command, ["engine config", "engine config --config engine.toml", "engine config --json"]).action(
    context.action(async (options: { config?: string; json?: true }) => {
      const described = describeConfig(await context.loadConfig({ configFile: options.config }));
      if (options.json) {
        await context.writeJson(described);
        return 0;
      }
      const rows = described.map((row) => [row.env ?? row.toml ?? row.name, shown(row), row.origin].map(textCell));
      await context.writeLine(renderTable(["OPTION", "VALUE", "FROM"], rows, context.style));
      return 0;
    }),
  );
};

function shown({ value }: DescribedOption): string {
  if (value === null) return "(unset)";
  return Array.isArray(value) ? value.join(",") : String(value);
}
