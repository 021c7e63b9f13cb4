import { dirname } from "node:path";
import { valuesOf } from "../src/config/option.ts";
import type { Config } from "../src/config/options.ts";
import { QUERY_OPTIONS } from "../src/query/options.ts";
import { sandboxConfig } from "../src/sandbox/contract/options.ts";

/** Where this process keeps its files, or finds them. */
export function privatePathsOf(config: Config): string[] {
  const { home, localData, catalogUrl, tlsCert, tlsKey } = config;
  const { queryCacheDir } = valuesOf(QUERY_OPTIONS, config);
  const { sandboxHome } = sandboxConfig(config);
  const catalog = catalogUrl.kind === "sqlite" ? [catalogUrl.path, dirname(catalogUrl.path)] : [];
  return [home, localData, ...catalog, queryCacheDir, sandboxHome, tlsCert, tlsKey].filter(
    (path) => path !== undefined,
  );
}
