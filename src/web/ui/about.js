import { element } from './element.js';
import { equation } from './equation.js';
import { flow } from './flow.js';

/** A site's description of a model: its paper, equation, data flow and quality. @param model an entry of site.json */
export function about({ name, parameters, about: told }) {
  const { authors, paper, link, idea, bleu, errors, note } = told;
  const measured = [parameters && `${short(parameters)} parameters`, bleu !== null && `${bleu.toFixed(1)} BLEU`];
  const cited = link ? element('a', { href: link, rel: 'noreferrer' }, paper || link) : element('cite', {}, paper);
  const line = (name, ...children) => element('p', { class: name }, ...children);
  return element(
    'section',
    { class: 'about', 'aria-label': `About ${told.title || name}` },
    ...(authors || paper || link ? [line('byline', authors && `${authors.replace(/\.$/, '')}. `, cited)] : []),
    ...(idea ? [line('idea', idea)] : []),
    ...(told.equation ? [element('div', { class: 'equation' }, ...told.equation.split(';').map(equation))] : []),
    ...(told.flow ? [flow(told.flow)] : []),
    ...(measured.some(Boolean) ? [line('measured', measured.filter(Boolean).join(' \u00b7 '))] : []),
    ...(errors ? [line('errors', element('strong', {}, 'Wrong first: '), errors)] : []),
    ...(note ? [line('note', note)] : []),
  );
}

/** Shortens a large number with commas: 3,412,480 becomes 3.4 million. */
function short(number) {
  const value = Number(number.replaceAll(',', ''));
  return value >= 100_000 ? `${(value / 1_000_000).toFixed(1)} million` : number;
}
