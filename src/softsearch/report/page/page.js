"use strict";
// The browsable list of translations: order, filter, pages, and marks on the words that differ.
{
  const PER_PAGE = 20;
  const LARGEST = 4e6; // cells of a table of common words; texts beyond it are compared as sets
  const data = JSON.parse(document.getElementById("data").textContent);
  const { sources, references, systems, lengths } = data;
  const control = (id) => document.getElementById(id);
  const pagers = document.querySelectorAll(".pager");
  const searched = sources.map((text, at) =>
    [text, references[at], ...systems.map((system) => system.hypotheses[at])].join("\n").toLowerCase(),
  );
  let matches = [];
  let page = 0;

  // Scripts without spaces are compared by character, all others by word, punctuation apart. A word follows its spaces.
  const TOKEN =
    /(\s*)([\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Mymr}\p{sc=Tibt}\p{sc=Lana}\p{sc=Tale}\p{sc=Talu}\p{sc=Tavt}]\p{M}*|[\p{L}\p{M}\p{N}]+|\S)/gu;
  const words = (text) => [...text.matchAll(TOKEN)].map((match) => match[2]);

  // For the words of each side, whether they are in the longest common subsequence.
  function common(a, b) {
    if (a.length * b.length > LARGEST) {
      const [setA, setB] = [new Set(a), new Set(b)];
      return [a.map((token) => setB.has(token)), b.map((token) => setA.has(token))];
    }
    const width = b.length + 1;
    const best = new Uint32Array((a.length + 1) * width); // length of the subsequence of the rests
    for (let i = a.length - 1; i >= 0; i--) {
      for (let j = b.length - 1; j >= 0; j--) {
        const at = i * width + j;
        best[at] = a[i] === b[j] ? best[at + width + 1] + 1 : Math.max(best[at + width], best[at + 1]);
      }
    }
    const [inA, inB] = [a, b].map((side) => new Array(side.length).fill(false));
    for (let i = 0, j = 0; i < a.length && j < b.length; ) {
      if (a[i] === b[j]) {
        inA[i++] = inB[j++] = true;
      } else if (best[(i + 1) * width + j] >= best[i * width + j + 1]) {
        i++;
      } else {
        j++;
      }
    }
    return [inA, inB];
  }

  // The text, with words that are not `kept` in elements of their own, neighbours together.
  function marked(text, kept, name, className) {
    const parts = document.createDocumentFragment();
    let run = null;
    [...text.matchAll(TOKEN)].forEach(([both, space, word], index) => {
      if (kept[index]) {
        parts.append(both);
        run = null;
      } else if (run) {
        run.append(both);
      } else {
        run = element(name, word, className);
        parts.append(space, run);
      }
    });
    return parts;
  }

  function element(name, content, className) {
    const made = document.createElement(name);
    made.append(content);
    if (className) made.className = className;
    return made;
  }

  function entry(label, value, text, language) {
    const term = element("dt", label);
    if (value !== null) term.append(" ", element("span", value.toFixed(1), "value"));
    const shown = element("dd", text);
    if (!shown.textContent.trim()) {
      shown.replaceChildren(element("span", "empty", "none"));
    } else {
      shown.lang = language;
      shown.dir = "auto";
    }
    return [term, shown];
  }

  function sentence(at) {
    const base = control("compare")?.value ?? "reference";
    const text = base === "reference" ? references[at] : systems[base].hypotheses[at];
    const baseWords = words(text);
    const matched = new Array(baseWords.length).fill(false);
    const [from, to] = data.languages;
    const shown = systems.map((system, index) => {
      if (String(index) === base) return null;
      const [inBase, inText] = common(baseWords, words(system.hypotheses[at]));
      inBase.forEach((is, index) => (matched[index] ||= is));
      return marked(system.hypotheses[at], inText, "mark");
    });
    const underlined = marked(text, matched, "span", "missed");
    const entries = element("dl", "");
    entries.append(...entry(data.into[at] ? `source, into ${data.into[at]}` : "source", null, sources[at], from));
    entries.append(...entry("reference", null, base === "reference" ? underlined : references[at], to));
    systems.forEach((system, index) => {
      entries.append(...entry(system.name, system.scores[at], shown[index] ?? underlined, to));
    });
    const length = lengths[at] === 1 ? `1 ${data.unit.slice(0, -1)}` : `${lengths[at]} ${data.unit}`;
    const item = element("li", element("h3", `Sentence ${at + 1}, ${length}`), "sentence");
    item.append(entries);
    return item;
  }

  const pages = () => Math.max(1, Math.ceil(matches.length / PER_PAGE));

  function show() {
    control("sentences").replaceChildren(...matches.slice(page * PER_PAGE, (page + 1) * PER_PAGE).map(sentence));
    for (const pager of pagers) {
      pager.querySelector(".where").textContent = `Page ${page + 1} of ${pages()}`;
      for (const button of pager.querySelectorAll("button")) {
        const forward = ["next", "last"].includes(button.dataset.go);
        button.ariaDisabled = (forward ? page + 1 >= pages() : page === 0) ? "true" : "false"; // keeps the focus
      }
    }
  }

  function order() {
    const [kind, index] = control("sort").value.split("-");
    const gain = (at) => data.direction * (systems[index].scores[at] - systems[0].scores[at]);
    const key = {
      score: (at) => data.direction * systems[index].scores[at],
      worse: gain,
      better: (at) => -gain(at),
      long: (at) => -lengths[at],
      short: (at) => lengths[at],
      file: (at) => at,
    }[kind];
    return (left, right) => key(left) - key(right) || left - right;
  }

  function choose() {
    const wanted = control("filter").value.trim().toLowerCase();
    const differing = control("differing")?.checked;
    const differs = (at) => systems.some((system) => system.hypotheses[at] !== systems[0].hypotheses[at]);
    matches = [...sources.keys()].filter((at) => searched[at].includes(wanted) && (!differing || differs(at)));
    matches.sort(order());
    page = 0;
    const [part, all] = [matches.length, sources.length].map((count) => count.toLocaleString("en"));
    control("count").textContent = part === all ? `${all} sentences` : `${part} of ${all} sentences`;
    show();
  }

  for (const id of ["sort", "differing"]) control(id)?.addEventListener("change", choose);
  control("compare")?.addEventListener("change", show);
  let waiting;
  control("filter").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(choose, 120);
  });
  document.querySelector(".controls").addEventListener("submit", (event) => event.preventDefault());
  for (const pager of pagers) {
    pager.addEventListener("click", (event) => {
      const where = event.target.dataset.go;
      if (!where || event.target.ariaDisabled === "true") return;
      page = { first: 0, previous: page - 1, next: page + 1, last: pages() - 1 }[where];
      show();
      if (pager !== pagers[0]) control("count").scrollIntoView();
    });
  }
  choose();
  control("browser").hidden = false;
  for (const figure of document.querySelectorAll("[data-heads]")) {
    const [system, map] = figure.dataset.heads.split(" ").map(Number);
    figure.querySelector(".head").hidden = false;
    figure.querySelector("select").addEventListener("change", (event) => {
      const rows = systems[system].heads[map][event.target.selectedIndex].map((row) => row.split(" "));
      for (const cell of figure.querySelectorAll("tbody td")) {
        const percent = rows[cell.parentElement.sectionRowIndex][cell.cellIndex - 1];
        cell.className = `w${percent}`;
        cell.textContent = percent === "0" ? "" : percent;
      }
    });
  }
  for (const figure of document.querySelectorAll("[data-trace]")) {
    const [system, trace] = figure.dataset.trace.split(" ").map(Number);
    figure.append(beamTree(systems[system].traces[trace]));
  }
}
