import { request } from "../../base/api.ts";
import type { Run } from "./use-result.ts";

export const DOWNLOADS = [
  { id: "csv", title: "CSV", accept: "text/csv" },
  { id: "ndjson", title: "NDJSON", accept: "application/x-ndjson" },
  { id: "parquet", title: "Parquet", accept: "application/vnd.apache.parquet" },
  { id: "arrow", title: "Arrow", accept: "application/vnd.apache.arrow.stream" },
] as const;

export type DownloadFormat = (typeof DOWNLOADS)[number]["id"];

/** All rows of a query as a file: it runs again, without the limit of the page. Rejects with an `ApiError`. */
export async function download({ text, language, database }: Run, format: DownloadFormat): Promise<void> {
  const accept = DOWNLOADS.find(({ id }) => id === format)?.accept ?? "text/csv";
  const response = await request("/v1/query", {
    method: "POST",
    body: text,
    headers: {
      "Content-Type": language === "kql" ? "application/x-kql" : "application/sql",
      "X-Database": database,
      Accept: accept,
    },
  });
  const address = URL.createObjectURL(await response.blob());
  try {
    const link = document.createElement("a");
    link.href = address;
    link.download = `rows.${format}`;
    link.click();
  } finally {
    URL.revokeObjectURL(address);
  }
}
