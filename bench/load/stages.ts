/** The stage of ingest that a source file belongs to; undefined for code that every stage uses. */
export function stageOf(url: string): string | undefined {
  if (/\/src\/format\/(ndjson|decimal|time)/.test(url)) return "scan: parse and assemble rows";
  if (url.includes("/src/format/columns/")) return "scan: column builders";
  if (/\/src\/format\/|apache-arrow|flatbuffers/.test(url)) return "seal: encode the extent";
  if (url.includes("/src/ingest/seal")) return "seal: other (checksum, hand-over)";
  if (/\/src\/io\/objectstore\/|@aws-sdk|@smithy/.test(url)) return "upload";
  if (/\/src\/(io\/http\/client|api\/edge)\/|\/undici\//.test(url)) return "forward";
  if (url.includes("/src/catalog/")) return "commit";
  if (/\/src\/(io\/http|api)\//.test(url)) return "receive and acknowledge";
  if (url.includes("/src/ingest/")) return "stage";
  if (/^node:internal\/(modules|bootstrap)|cjs-module-lexer/.test(url)) return "load modules";
  if (url.includes("piscina")) return "thread pool";
  return undefined;
}
