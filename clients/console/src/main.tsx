import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Accuracy } from "./pages/accuracy.js";
import { Cluster } from "./pages/cluster.js";
import { Diagnosis } from "./pages/diagnosis.js";
import { Job } from "./pages/job.js";
import { Jobs } from "./pages/jobs.js";
import { Plan } from "./pages/plan.js";
import { Service } from "./pages/service.js";
import { link, usePlace } from "./router.js";
import "./style.css";

const PAGES = {
  jobs: Jobs,
  plan: Plan,
  diagnosis: Diagnosis,
  cluster: Cluster,
  accuracy: Accuracy,
  service: Service,
} as const;

const SCHEMES = ["light dark", "light", "dark"] as const;
const SCHEME_NAMES = { "light dark": "as the system", light: "light", dark: "dark" } as const;

function Theme() {
  const [scheme, setScheme] = useState(localStorage.getItem("nodewise.scheme") ?? "light dark");
  useEffect(() => {
    localStorage.setItem("nodewise.scheme", scheme);
    document.documentElement.style.colorScheme = scheme;
  }, [scheme]);
  return (
    <label class="theme">
      Colours
      <select value={scheme} onChange={(event) => setScheme(event.currentTarget.value)}>
        {SCHEMES.map((each) => (
          <option key={each} value={each}>
            {SCHEME_NAMES[each]}
          </option>
        ))}
      </select>
    </label>
  );
}

function Console() {
  const { path } = usePlace();
  const [name = "jobs", ...rest] = path;
  const job = name === "jobs" && rest.length ? rest.join("/") : undefined;
  useEffect(() => {
    document.title = `${job ?? name} · Nodewise`;
  }, [name, job]);
  const Page = PAGES[name as keyof typeof PAGES] ?? Jobs;
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById("content")?.focus()}>
        Skip to the content
      </button>
      <header>
        <a class="brand" href={link(["jobs"])}>
          Nodewise
        </a>
        <nav aria-label="Pages">
          {Object.keys(PAGES).map((each) => (
            <a key={each} href={link([each])} aria-current={each === name ? "page" : undefined}>
              {each[0]?.toUpperCase()}
              {each.slice(1)}
            </a>
          ))}
        </nav>
        <Theme />
      </header>
      <main id="content" tabIndex={-1}>
        {job ? <Job key={job} profileId={job} /> : <Page key={name} />}
      </main>
    </>
  );
}

const root = document.getElementById("console");
if (root) render(<Console />, root);
