import { LocationProvider } from "preact-iso";
import { render, type JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { ApiError } from "../../../src/web/client/base/api-error.ts";
import { toast } from "../../../src/web/client/base/announce.ts";
import { scriptUrl } from "../../../src/web/client/base/trusted-types.ts";
import { choice, flag, json, text } from "../../../src/web/client/base/params.ts";
import { usePackedText } from "../../../src/web/client/base/use-packed-text.ts";
import { useParams } from "../../../src/web/client/base/use-params.ts";
import { Chart } from "../../../src/web/client/chart/chart.tsx";
import { Button } from "../../../src/web/client/components/button.tsx";
import { Combobox } from "../../../src/web/client/components/combobox.tsx";
import { Dialog } from "../../../src/web/client/components/dialog.tsx";
import { EmptyState } from "../../../src/web/client/components/empty-state.tsx";
import { ErrorBox } from "../../../src/web/client/components/error-box.tsx";
import { Field, Select } from "../../../src/web/client/components/field.tsx";
import { PageHead } from "../../../src/web/client/components/page-head.tsx";
import { Progress } from "../../../src/web/client/components/spinner.tsx";
import { Tabs } from "../../../src/web/client/components/tabs.tsx";
import { Editor } from "../../../src/web/client/editor/editor.tsx";
import { Notices } from "../../../src/web/client/shell/notices.tsx";
import "../../../src/web/client/styles/tokens.css";
import "../../../src/web/client/styles/base.css";
import "../../../src/web/client/styles/components.css";
import "../../../src/web/client/styles/shell.css";

/** Every component that pages are made of, on one page: what `gallery.test.ts` opens under the real policy. */
const COUNTRIES = Array.from({ length: 300 }, (_, index) => `database_${String(index).padStart(3, "0")}`);
const PARAMS = {
  name: text("none"),
  look: choice(["lines", "bars"], "lines"),
  on: flag(),
  range: json({ from: 0 }, (value): value is { from: number } => typeof value === "object" && value !== null),
};

const FAILURE = new ApiError(429, {
  code: "too_many_requests",
  message: 'column "lvel" is not known\nSELECT lvel FROM events',
  requestId: "0195d1a2-7b1c-7c3e-9f2a-1d2b3c4d5e6f",
  line: 1,
  column: 8,
  suggestion: "level",
  hint: "Columns of events: at, body, level.",
  retryAfterMs: 2_000,
});

function Gallery(): JSX.Element {
  const [tab, setTab] = useState<"one" | "two">("one");
  const [isOpen, setOpen] = useState(false);
  const [database, setDatabase] = useState("database_007");
  const [name, setName] = useState("");
  const [theme, setTheme] = useState<"light" | "dark">("light");
  const [sql, setSql] = usePackedText(
    "sql",
    "-- levels of today\nSELECT level, count(*) AS n\nFROM events\nWHERE body LIKE 'a%' AND size > 1e3\nGROUP BY level",
  );
  const [ran, setRan] = useState("");
  const [values, update] = useParams(PARAMS);
  const [retries, setRetries] = useState(0);
  const series = useMemo(() => [{ title: "info" }, { title: "warn" }, { title: "error" }], []);
  const data = useMemo(() => {
    const x = Array.from({ length: 60 }, (_, index) => 1_790_000_000 + index * 60);
    const wave = (height: number, turn: number) =>
      x.map((_, index) => Math.round(height * (1.2 + Math.sin(index / turn))));
    return [x, wave(400, 6), wave(150, 9), wave(40, 4)] as const;
  }, []);
  return (
    <main class="main stack" id="gallery">
      <PageHead title="Components" lead="What pages are made of.">
        <Button look="primary" icon="play" onClick={() => toast("It has run", "good")}>
          Run
        </Button>
        <Button look="danger" icon="trash" needs="admin">
          Delete
        </Button>
        <Button isBusy>Working</Button>
      </PageHead>
      <ErrorBox title="The query failed." error={FAILURE} onRetry={() => setRetries(retries + 1)} />
      <output data-retries={retries}>{retries} retries</output>
      <div class="row">
        <Field label="Name" value={name} onInput={setName} hint="As it is shown to others." />
        <Field label="Wrong" value="x y" onInput={setName} error="A name has no spaces." />
        <Select
          label="Theme"
          value={theme}
          options={[
            { value: "light", title: "Light" },
            { value: "dark", title: "Dark" },
          ]}
          onChange={(next) => {
            setTheme(next);
            document.documentElement.dataset["theme"] = next;
            dispatchEvent(new Event("engine:theme"));
          }}
        />
        <Combobox
          label="Database"
          value={database}
          options={COUNTRIES.map((value) => ({ value, title: value }))}
          onChange={setDatabase}
        />
      </div>
      <output id="database">{database}</output>
      <Tabs
        label="Results"
        tabs={[
          { id: "one", title: "Rows" },
          { id: "two", title: "Chart" },
        ]}
        selected={tab}
        onSelect={setTab}
      >
        <p>{tab === "one" ? "Rows are here." : "A chart is here."}</p>
      </Tabs>
      <Editor
        label="Query"
        onReady={(editor) => editor.mark([{ from: 3, to: 9, message: "levels are not known" }])}
        value={sql ?? ""}
        onChange={setSql}
        onRun={() => setRan(sql ?? "")}
        onCancel={() => {
          setRan("cancelled");
          return true;
        }}
      />
      <output id="ran">{ran}</output>
      <Chart
        label="Rows for each minute by level"
        data={data}
        series={series}
        look="areas"
        onRange={(from, to) => update({ range: { from: Math.round(to - from) } })}
      />
      <output id="params">{JSON.stringify(values)}</output>
      <Button onClick={() => update({ name: "a b", look: "bars", on: true })}>Change the address</Button>
      <Progress label="Reading" value={0.4} />
      <EmptyState title="Nothing is saved">
        <p>Save a query to find it here.</p>
      </EmptyState>
      <Button onClick={() => setOpen(true)}>Open a dialog</Button>
      <Button onClick={() => trust()}>Make a worker of another host</Button>
      {isOpen && (
        <Dialog title="A dialog" width="wide" onClose={() => setOpen(false)} actions={<Button>Save</Button>}>
          <Field label="In the dialog" value={name} onInput={setName} />
        </Dialog>
      )}
      <Notices />
    </main>
  );
}

function trust(): void {
  try {
    scriptUrl("https://example.com/ui/assets/a.js");
  } catch (error) {
    toast(String(error), "bad");
  }
}

const place = document.getElementById("app");
if (place !== null) {
  render(
    <LocationProvider scope="/ui/">
      <Gallery />
    </LocationProvider>,
    place,
  );
}
