import { request } from "../../base/api.ts";
import { saveBlob } from "../../base/save-file.ts";
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
  saveBlob(`rows.${format}`, await response.blob());
}
