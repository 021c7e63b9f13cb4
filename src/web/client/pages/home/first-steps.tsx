import type { JSX } from "preact";
import { usePageAddress } from "../../base/schema.ts";
import { useSession } from "../../base/session.ts";
import { useOpenQuery } from "../../base/use-open-query.ts";
import { Button } from "../../components/button.tsx";
import { CodeBlock } from "../../components/code-block.tsx";
import { PageHead } from "../../components/page-head.tsx";

/** What the rows of the first step are sent to, and are in. */
const [DATABASE, TABLE] = ["default", "events"];
const QUERY = `SELECT level, count(*) AS rows FROM ${TABLE} GROUP BY level`;

type FirstStepsProps = { onCheck: () => void; isChecking: boolean };

/** An empty server: rows in by one command, for the address that this page has. */
export function FirstSteps({ onCheck, isChecking }: FirstStepsProps): JSX.Element {
  const { data: session } = useSession();
  const addressOf = usePageAddress();
  const openQuery = useOpenQuery(DATABASE);
  const isOn = session?.config.enabled === true;
  return (
    <>
      <PageHead title="Overview" lead="This server runs, and holds no rows yet." />
      <ol class="steps">
        <li>
          <h2>Send the first rows</h2>
          <p>
            One JSON object on each line. The table <code>{TABLE}</code> is made with them, and its columns as well.
          </p>
          <CodeBlock label="Send two rows with curl" text={ingestCommand(isOn)} />
          {isOn && (
            <p class="lead">
              Put a token of the role <code>write</code> in the place of <code>$ENGINE_TOKEN</code>:{" "}
              <code>engine token create</code> makes one.
            </p>
          )}
        </li>
        <li>
          <h2>Or send a file</h2>
          <p>
            NDJSON, CSV or Parquet, compressed or not, with the command line; or drop a file of NDJSON{" "}
            <a href={`${addressOf("catalog")}?table=${TABLE}&part=ingest`}>on the page of the table</a>.
          </p>
          <CodeBlock
            label="Send a file with the command line"
            text={`engine ingest push --server-url ${location.origin} --table ${TABLE} events.ndjson`}
          />
        </li>
        <li>
          <h2>Ask about them</h2>
          <p>Rows can be queried as soon as the answer is there.</p>
          <CodeBlock label="Query with curl" text={queryCommand(isOn)} />
          <div class="row">
            <Button look="primary" icon="refresh" isBusy={isChecking} onClick={onCheck}>
              I have sent rows: show them
            </Button>
            <Button
              icon="query"
              onClick={() => {
                // The page knows the new table by then.
                onCheck();
                openQuery(QUERY);
              }}
            >
              Ask here
            </Button>
          </div>
        </li>
      </ol>
    </>
  );
}

function withToken(isOn: boolean): string {
  return isOn ? `  -H "Authorization: Bearer $ENGINE_TOKEN" \\\n` : "";
}

function ingestCommand(isOn: boolean): string {
  return `printf '%s\\n' \\
  '{"level":"info","body":"the first row"}' \\
  '{"level":"warn","body":"the second row"}' |
curl ${location.origin}/v1/ingest \\
${withToken(isOn)}  -H "X-Table: ${TABLE}" --data-binary @-`;
}

function queryCommand(isOn: boolean): string {
  return `curl ${location.origin}/v1/query \\
${withToken(isOn)}  -d "${QUERY}"`;
}
